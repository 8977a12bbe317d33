// How a problem is spread over the lanes of vector registers.
//
// A lane works on one stretch of time of one sequence under one model. Models and sequences are independent, so their
// lanes simply run side by side. Where they do not fill a register, time is cut into stretches: every stretch is run
// from the state zero first, the true states at the joints follow by
//
//     x[end] = A^length x[start] + (its end when run from zero),
//
// and a second run, from the true states, gives the rest. The adjoint runs likewise, backwards and with A'.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace schurfire {

struct Plan {
  int64_t models, sequences, stretches, steps;
  int64_t length;  // of the longest stretch
  bool uneven;     // whether some stretches are one step shorter
  int64_t lanes, groups;
  int width;  // lanes of one group

  // Models run fastest, then sequences: neighbouring lanes are neighbours in arrays with these axes innermost.
  int64_t model(int64_t lane) const { return lane % models; }
  int64_t sequence(int64_t lane) const { return lane / models % sequences; }
  int64_t stretch(int64_t lane) const { return lane / models / sequences; }
  int64_t lane(int64_t sequence, int64_t stretch, int64_t model) const {
    return (stretch * sequences + sequence) * models + model;
  }

  int64_t start(int64_t stretch) const { return stretch * steps / stretches; }
  int64_t size(int64_t stretch) const { return start(stretch + 1) - start(stretch); }
};

// The plan with the least work, counted in operations on vectors. The constants are measured, not derived: 4 operations
// to read or write a vector of a signal, 3000 to run a group once more and 300 for an odd last step, 300 for a model's
// powers and 100 for each of their products, 20 for a lane. For 1 to 50 models, 1 to 8 sequences, 50 to 20 000 steps and
// 2 to 28 states the choice took at most 28 % longer than the best number of stretches, in nine of ten cases at most 8 %.
template <class T>
Plan make_plan(const Problem<T>& problem, int width, bool backwards) {
  const double n = problem.states, m = problem.inputs, o = problem.outputs;
  const double recurrence = n * n + (n + 4) * (backwards ? o : m);
  const double step = recurrence + (backwards ? (n + o + 4) * (n + m) : o * (n + m + 4));
  Plan best{};
  double least = 0;
  for (int64_t stretches = 1; stretches <= width && stretches <= (problem.steps > 0 ? problem.steps : 1); ++stretches) {
    Plan plan{problem.models, problem.sequences, stretches, problem.steps, 0, false, 0, 0, width};
    plan.length = (problem.steps + stretches - 1) / stretches;
    plan.uneven = problem.steps % stretches != 0;
    plan.lanes = problem.models * problem.sequences * stretches;
    plan.groups = (plan.lanes + width - 1) / width;
    double work = plan.groups * plan.length * step;
    if (stretches > 1) {
      const int doublings = 64 - __builtin_clzll(static_cast<unsigned long long>(plan.length));
      const double powers = 300 + 1.5 * doublings * (100 + n * n * n);
      work += plan.groups * (3000 + 300 * plan.uneven + plan.length * recurrence);
      work += plan.models * powers + plan.lanes * (20 + n * n);
    }
    if (stretches == 1 || work < least) best = plan, least = work;
    if (stretches == 1 && plan.lanes % width == 0) break;  // no lane is idle
  }
  return best;
}

}  // namespace schurfire

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

  // Models run fastest, so that arrays with models innermost are read as whole vectors.
  int64_t model(int64_t lane) const { return lane % models; }
  int64_t stretch(int64_t lane) const { return lane / models % stretches; }
  int64_t sequence(int64_t lane) const { return lane / models / stretches; }
  int64_t lane(int64_t sequence, int64_t stretch, int64_t model) const {
    return (sequence * stretches + stretch) * models + model;
  }

  int64_t start(int64_t stretch) const { return stretch * steps / stretches; }
  int64_t size(int64_t stretch) const { return start(stretch + 1) - start(stretch); }
};

// The plan with the least work, counted in vector operations.
template <class T>
Plan make_plan(const Problem<T>& problem, int width) {
  const double n = problem.states, m = problem.inputs, o = problem.outputs;
  const double recurrence = n * n + (problem.B ? n * m : n);
  const double step = recurrence + (problem.C ? o * n : o) + (problem.D ? o * m : 0);
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
      double doublings = 1;
      for (int64_t length = plan.length; length > 1; length /= 2) doublings += 1.5;
      const double powers = plan.models * doublings * n * n * n / 2;  // a row of a small matrix fills half a register
      work += plan.groups * plan.length * recurrence + powers + plan.lanes * n * n;
    }
    if (stretches == 1 || work < 0.9 * least) best = plan, least = work;
  }
  return best;
}

}  // namespace schurfire

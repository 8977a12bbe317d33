// What entry.cpp asks of a kernel: one pass over the data of one group of lanes, forwards or backwards.
#pragma once

#include "orthogonal.hpp"
#include "plan.hpp"
#include "powers.hpp"
#include "problem.hpp"

namespace schurfire {

template <class T>
struct Pass {
  const Problem<T>& problem;
  const Plan& plan;
  bool joints_only;  // the first of two runs: from zero, and only to learn what each stretch adds to its end
  T* joints;         // (groups, states, width): the state that each stretch starts from; afterwards the one it ends with
  T* gradients;      // (groups, entries of (A B; C D), width): sums over the steps of each lane

  int64_t entries() const { return (problem.states + problem.outputs) * (problem.states + problem.inputs); }
};

template <class T>
struct Kernel {
  int width;  // lanes of one group
  int64_t (*scratch)(const Problem<T>&);  // numbers of scratch memory that one call needs, aligned to 64 bytes
  void (*forward)(const Pass<T>&, int64_t group, T* scratch);
  void (*backward)(const Pass<T>&, int64_t group, T* scratch);
  int64_t (*powers_scratch)(int64_t n);  // likewise
  bool (*powers_prove)(const Powers<T>&, int64_t model, T* scratch);
  int64_t (*orthogonal_scratch)(int64_t n);
  bool (*orthogonalise)(const Orthogonal<T>&, int64_t model, T* scratch);
};

}  // namespace schurfire

// Vectors of lanes.
#pragma once

#include "plan.hpp"
#include "problem.hpp"

// One compilation for each instruction set, each in a namespace of its own.
#ifndef SCHURFIRE_INSTRUCTIONS
#define SCHURFIRE_INSTRUCTIONS baseline
#define SCHURFIRE_REGISTER_BYTES 16
#endif

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
constexpr int width = SCHURFIRE_REGISTER_BYTES / sizeof(T);

// A vector of lanes; it may lie at any address that a T may lie at.
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(SCHURFIRE_REGISTER_BYTES), aligned(alignof(T)), may_alias));
};

template <class T>
using Vector = typename VectorOf<T>::type;

// The lanes of one group. The last group may have fewer than a register holds.
template <class T>
struct Group {
  int count;
  int64_t model[width<T>], sequence[width<T>], start[width<T>];
  Vector<T> longer{};  // 1 in the lanes whose stretch is of full length, 0 in the others

  Group(const Plan& plan, int64_t index) {
    const int64_t first = index * width<T>, left = plan.lanes - first;
    count = left < width<T> ? static_cast<int>(left) : width<T>;
    int64_t m = plan.model(first), s = plan.sequence(first), k = plan.stretch(first);
    int64_t begin = plan.start(k), full = plan.size(k) == plan.length;
    for (int i = 0; i < count; ++i) {
      model[i] = m, sequence[i] = s, start[i] = begin;
      longer[i] = full;
      if (++m == plan.models) m = 0, ++s;
      if (s == plan.sequences) s = 0, ++k, begin = plan.start(k), full = plan.size(k) == plan.length;
    }
  }
};

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

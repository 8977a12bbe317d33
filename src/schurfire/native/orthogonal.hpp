// What is asked about nearly orthogonal matrices: those that are orthogonal to rounding.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace schurfire {

// Q is Z after steps  Q (I + E/2 + 3/8 E^2), E = I - Q'Q,  until ||E||_F is at most `tolerance`; Z itself where
// ||I - Z'Z||_F exceeds `reach` or is not a number.
template <class T>
struct Orthogonal {
  View<const T> Z;
  View<T> Q;
  int64_t n, models;
  T reach, tolerance;
  int32_t steps;   // at most
  uint8_t* near;  // one flag for each model: within reach
};

// Multiplications and additions, if three steps are needed.
template <class T>
int64_t operations(const Orthogonal<T>& p) {
  return p.models * 12 * p.n * p.n * p.n;
}

}  // namespace schurfire

// What is asked about the powers of a matrix: do they prove that all eigenvalues lie in a disc?
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace schurfire {

// Matrices (models, n, n) and a disc. With B = (A - centre I) * scale, where scale is a little more than 1 / radius, the
// question is whether some ||B^(2^k)|| < 1 for k <= squarings, with every rounding error accounted for.
template <class T>
struct Powers {
  View<const T> A;
  int64_t n, models;
  T centre, scale;
  T lost;     // what flushing entries of B to zero can cost its norm
  T doubt;    // how often the error bound must fit below 1
  int32_t squarings;
  uint8_t* proven;  // one flag for each model
};

// Multiplications and additions, if all squarings are needed.
template <class T>
int64_t operations(const Powers<T>& p) {
  return p.models * p.squarings * p.n * p.n * p.n;
}

}  // namespace schurfire

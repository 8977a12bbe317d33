// Transposition of a square of numbers held in vectors, a vector for each row.
//
// Cut the square into tiles of 2 d x 2 d, and each tile into four squares; exchange the two off the diagonal:
//
//     a b      a c
//     c d  ->  b d
//
// After d = 1, 2, 4, ..., width / 2 the square is transposed: each stage exchanges one binary digit of the row number
// with the same digit of the column number. A stage costs one shuffle for each row.
#pragma once

#include <cstddef>
#include <utility>  // std::index_sequence, which is a type and has no code

#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

// Rows i and i + distance of all tiles: (a, b) and (c, d) become (a, c) and (b, d).
template <int distance, class V, std::size_t... column>
__attribute__((always_inline)) inline void exchange(V& upper, V& lower, std::index_sequence<column...>) {
  constexpr int width = sizeof...(column);  // the columns of `lower` count from here on
  const V a_c = __builtin_shufflevector(upper, lower, (column & distance ? width + int(column) - distance : int(column))...);
  lower = __builtin_shufflevector(upper, lower, (column & distance ? width + int(column) : int(column) + distance)...);
  upper = a_c;
}

template <class T, int distance = 1>
__attribute__((always_inline)) inline void transpose(Vector<T> (&row)[width<T>]) {
#pragma GCC unroll 16
  for (int i = 0; i < width<T>; ++i)
    if (!(i & distance)) exchange<distance>(row[i], row[i + distance], std::make_index_sequence<width<T>>());
  if constexpr (2 * distance < width<T>) transpose<T, 2 * distance>(row);
}

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

// Small matrices of vectors: each entry holds one number for every lane.
#pragma once

#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
struct Grid {
  using V = Vector<T>;
  V* data = nullptr;
  int64_t row = 0, column = 0;

  V& operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
  Grid transposed() const { return {data, column, row}; }
  Grid part(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
};

// A grid stored row by row.
template <class T>
Grid<T> grid(Vector<T>* data, int64_t columns) {
  return {data, columns, 1};
}

// Rows of a tile of so many columns whose sums fit into the registers, 32 of 64 bytes or else 16, with room for factors.
constexpr int most_columns = 5;
constexpr int most_rows(int columns) {
  if (SCHURFIRE_REGISTER_BYTES == 64) return 5;
  return columns <= 2 ? 4 : columns == 3 ? 3 : 2;
}

// How many of `left` rows or columns the next tile takes: as many as it can, but the last two share evenly.
inline int64_t next_part(int64_t left, int64_t most) {
  return left >= 2 * most ? most : left > most ? (left + 1) / 2 : left;
}

// The sums of one tile of  left * right,  held in registers; `right` must have adjacent columns.
template <int rows, int columns, class T>
__attribute__((always_inline)) inline void multiply_tile(Grid<T> out, Grid<T> left, Grid<T> right, int64_t inner,
                                                         bool add) {
  Vector<T> sum[rows][columns] = {};
  if (add)
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) sum[a][b] = out.data[a * out.row + b];
  for (int64_t k = 0; k < inner; ++k, left.data += left.column, right.data += right.row)
    for (int a = 0; a < rows; ++a) {
      const Vector<T> factor = left.data[a * left.row];
      for (int b = 0; b < columns; ++b) sum[a][b] += factor * right.data[b];
    }
  for (int a = 0; a < rows; ++a)
    for (int b = 0; b < columns; ++b) out.data[a * out.row + b] = sum[a][b];
}

template <int columns, class T>
void multiply_columns(Grid<T> out, Grid<T> left, Grid<T> right, int64_t rows, int64_t inner, bool add) {
  constexpr int most = most_rows(columns);
  while (rows > 0) {
    const int64_t now = next_part(rows, most);
    switch (now) {
      case 1: multiply_tile<1, columns>(out, left, right, inner, add); break;
      case 2: multiply_tile<2, columns>(out, left, right, inner, add); break;
      case 3: if constexpr (most >= 3) multiply_tile<3, columns>(out, left, right, inner, add); break;
      case 4: if constexpr (most >= 4) multiply_tile<4, columns>(out, left, right, inner, add); break;
      default: if constexpr (most >= 5) multiply_tile<5, columns>(out, left, right, inner, add); break;
    }
    out = out.part(now, 0), left = left.part(now, 0), rows -= now;
  }
}

// out = left * right, or out += left * right. The columns of `out` and `right` must be adjacent.
template <class T>
void multiply(Grid<T> out, Grid<T> left, Grid<T> right, int64_t rows, int64_t inner, int64_t columns, bool add) {
  while (columns > 0) {
    const int64_t now = next_part(columns, most_columns);
    switch (now) {
      case 1: multiply_columns<1>(out, left, right, rows, inner, add); break;
      case 2: multiply_columns<2>(out, left, right, rows, inner, add); break;
      case 3: multiply_columns<3>(out, left, right, rows, inner, add); break;
      case 4: multiply_columns<4>(out, left, right, rows, inner, add); break;
      default: multiply_columns<5>(out, left, right, rows, inner, add); break;
    }
    out.data += now, right.data += now, columns -= now;
  }
}

template <class T>
void set_zero(Grid<T> out, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out(i, j) = Vector<T>{};
}

template <class T>
void copy(Grid<T> out, Grid<T> in, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out(i, j) = in(i, j);
}

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

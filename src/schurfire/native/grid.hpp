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
  Grid from_row(int64_t i) const { return part(i, 0); }
  Grid part(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
};

// A grid stored row by row.
template <class T>
Grid<T> grid(Vector<T>* data, int64_t columns) {
  return {data, columns, 1};
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
  constexpr int tile = SCHURFIRE_REGISTER_BYTES == 64 || columns <= 2 ? 4 : 2;  // 32 registers, or 16
  int64_t i = 0;
  for (; i + tile <= rows; i += tile)
    multiply_tile<tile, columns>(out.from_row(i), left.from_row(i), right, inner, add);
  for (; i < rows; ++i) multiply_tile<1, columns>(out.from_row(i), left.from_row(i), right, inner, add);
}

// out = left * right, or out += left * right. The columns of `out` and `right` must be adjacent.
template <class T>
void multiply(Grid<T> out, Grid<T> left, Grid<T> right, int64_t rows, int64_t inner, int64_t columns, bool add) {
  while (columns > 0) {
    const int64_t now = columns < 6 ? columns : columns == 6 ? 3 : columns == 7 ? 4 : 5;
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

template <class T>
void read(Grid<T> out, const LaneView<T>& view, int64_t first_row, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out(i, j) = view.load(first_row + i, j);
}

template <class T>
void write(const LaneView<T>& view, Grid<T> in, int64_t first_row, int64_t rows, int64_t columns, const Vector<T>* flags) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      flags ? view.store(first_row + i, j, in(i, j), *flags) : view.store(first_row + i, j, in(i, j));
}

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

// One square matrix whose rows are vectors: here the lanes are neighbouring entries of a row.
#pragma once

#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

// Row by row; rows are filled up with zeros to whole vectors.
template <class T>
struct Rows {
  Vector<T>* data;
  int64_t n, vectors;  // vectors in a row

  Vector<T>& operator()(int64_t i, int64_t j) const { return data[i * vectors + j]; }
  T& entry(int64_t i, int64_t j) const { return reinterpret_cast<T*>(data + i * vectors)[j]; }
  T* end() const { return reinterpret_cast<T*>(data + n * vectors); }
};

template <class T>
int64_t vectors_in_row(int64_t n) {
  return (n + width<T> - 1) / width<T>;
}

template <class T>
Rows<T> rows_at(T* memory, int64_t n) {
  return {reinterpret_cast<Vector<T>*>(memory), n, vectors_in_row<T>(n)};
}

// A tile of  out = left * right  (of  left' * right  if transposed), its sums held in registers.
template <bool transposed, int rows, int vectors, class T>
__attribute__((always_inline)) inline void multiply_tile(Rows<T> out, Rows<T> left, Rows<T> right, int64_t i, int64_t j) {
  Vector<T> sum[rows][vectors] = {};
  for (int64_t k = 0; k < right.n; ++k)
    for (int a = 0; a < rows; ++a) {
      const T factor = transposed ? left.entry(k, i + a) : left.entry(i + a, k);
      for (int b = 0; b < vectors; ++b) sum[a][b] += factor * right(k, j + b);
    }
  for (int a = 0; a < rows; ++a)
    for (int b = 0; b < vectors; ++b) out(i + a, j + b) = sum[a][b];
}

template <bool transposed, int vectors, class T>
void multiply_vectors(Rows<T> out, Rows<T> left, Rows<T> right, int64_t j) {
  int64_t i = 0;
  for (; i + 4 <= out.n; i += 4) multiply_tile<transposed, 4, vectors>(out, left, right, i, j);
  for (; i < out.n; ++i) multiply_tile<transposed, 1, vectors>(out, left, right, i, j);
}

// out = left * right, or left' * right; `out` must not be one of the others.
template <bool transposed, class T>
void multiply(Rows<T> out, Rows<T> left, Rows<T> right) {
  int64_t j = 0;
  for (; j + 2 <= out.vectors; j += 2) multiply_vectors<transposed, 2>(out, left, right, j);
  if (j < out.vectors) multiply_vectors<transposed, 1>(out, left, right, j);
}

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

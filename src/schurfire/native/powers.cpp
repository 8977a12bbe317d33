// The bound of the powers of one matrix.
//
// In the maximum row-sum norm, with C the computed and B^(2^k) the exact power,
//
//     ||B^(2^k) - C|| <= err,   then   ||B^(2^(k+1)) - fl(C C)|| <= 2 ||C|| err + err^2 + g ||C||^2 + (underflow),
//
// where g bounds the relative rounding error of an inner product of length n, in any order, fused or not. The transposed
// matrix is squared, so that its row sums are sums of whole vectors.
#include "kernel.hpp"
#include "rows.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
constexpr T unit = sizeof(T) == sizeof(float) ? T(0x1p-24) : T(0x1p-53);

template <class T>
constexpr T tiny = sizeof(T) == sizeof(float) ? T(0x1p-126) : T(0x1p-1022);

// The largest sum of absolute values in a column; NaN if any entry is not finite.
template <class T>
T column_norm(Rows<T> C) {
  T largest = 0, total = 0;
  for (int64_t j = 0; j < C.vectors; ++j) {
    Vector<T> sum{};
    for (int64_t i = 0; i < C.n; ++i) sum += C(i, j) < 0 ? -C(i, j) : C(i, j);
    for (int lane = 0; lane < width<T>; ++lane) {
      if (sum[lane] > largest) largest = sum[lane];
      total += sum[lane];
    }
  }
  return largest + (total - total);
}

template <class T>
int64_t powers_scratch(int64_t n) {
  return 2 * n * vectors_in_row<T>(n) * width<T>;
}

template <class T>
bool powers_prove(const Powers<T>& p, int64_t model, T* scratch) {
  const int64_t n = p.n;
  Rows<T> C = rows_at(scratch, n), next = rows_at(C.end(), n);
  const T* A = p.A.data + model * p.A.model;
  for (int64_t i = 0; i < n; ++i) {
    C(i, C.vectors - 1) = Vector<T>{};
    for (int64_t j = 0; j < n; ++j) {
      const T entry = A[j * p.A.row + i * p.A.column];
      C.entry(i, j) = (i == j ? entry - p.centre : entry) * p.scale;
    }
  }
  const T g = T(1.01) * T(n + 4) * unit<T>, upward = 1 + 2 * g + 8 * unit<T>;
  const T flushed = 4 * T(n) * T(n) * tiny<T>;
  T norm = column_norm(C) * upward;
  T err = 4 * unit<T> * norm + p.lost;  // the shift and the scaling round, and so does the scale
  for (int32_t k = 0;; ++k) {
    if (norm + p.doubt * err < 1) return true;
    if (k == p.squarings || !(norm - norm == 0)) return false;
    err = ((2 * norm + err) * err + norm * norm * g + flushed * (1 + norm)) * upward;
    multiply<false>(next, C, C);
    const Rows<T> before = C;
    C = next, next = before;
    norm = column_norm(C) * upward;
  }
}

template int64_t powers_scratch<float>(int64_t);
template int64_t powers_scratch<double>(int64_t);
template bool powers_prove<float>(const Powers<float>&, int64_t, float*);
template bool powers_prove<double>(const Powers<double>&, int64_t, double*);

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

// Newton-Schulz steps on one nearly orthogonal matrix. They leave its singular vectors and send a singular value s to
// s (1 + e/2 + 3/8 e^2), e = 1 - s^2, whose own e is 5/8 e^3 + O(e^4).
#include "kernel.hpp"
#include "rows.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
int64_t orthogonal_scratch(int64_t n) {
  return 4 * n * vectors_in_row<T>(n) * width<T>;
}

// E = I - Q'Q, and the square of its Frobenius norm.
template <class T>
T deviation(Rows<T> E, Rows<T> Q) {
  multiply<true>(E, Q, Q);
  T total = 0;
  for (int64_t i = 0; i < E.n; ++i) {
    Vector<T> squares{};
    for (int64_t j = 0; j < E.vectors; ++j) {
      E(i, j) = -E(i, j);
      if (i / width<T> == j) E.entry(i, i) += 1;
      squares += E(i, j) * E(i, j);
    }
    for (int lane = 0; lane < width<T>; ++lane) total += squares[lane];
  }
  return total;
}

// Q <- Q (I + E/2 + 3/8 E^2)
template <class T>
void step(Rows<T> Q, Rows<T> E, Rows<T> P, Rows<T> before) {
  multiply<false>(P, E, E);
  const int64_t entries = Q.n * Q.vectors;
  for (int64_t i = 0; i < entries; ++i) {
    P.data[i] = T(0.5) * E.data[i] + T(0.375) * P.data[i];
    before.data[i] = Q.data[i];
  }
  multiply<false>(Q, before, P);
  for (int64_t i = 0; i < entries; ++i) Q.data[i] += before.data[i];
}

template <class T>
bool orthogonalise(const Orthogonal<T>& p, int64_t model, T* scratch) {
  const int64_t n = p.n;
  const Rows<T> Q = rows_at(scratch, n), E = rows_at(Q.end(), n), P = rows_at(E.end(), n), before = rows_at(P.end(), n);
  const T* Z = p.Z.data + model * p.Z.model;
  for (int64_t i = 0; i < n; ++i) {
    Q(i, Q.vectors - 1) = Vector<T>{};
    for (int64_t j = 0; j < n; ++j) Q.entry(i, j) = Z[i * p.Z.row + j * p.Z.column];
  }
  T size = deviation(E, Q);
  const bool near = size <= p.reach * p.reach;  // not if size is not a number
  for (int32_t k = 0; near && k < p.steps && size > p.tolerance * p.tolerance; ++k) {
    step(Q, E, P, before);
    size = deviation(E, Q);
  }
  T* out = p.Q.data + model * p.Q.model;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) out[i * p.Q.row + j * p.Q.column] = Q.entry(i, j);
  return near;
}

template int64_t orthogonal_scratch<float>(int64_t);
template int64_t orthogonal_scratch<double>(int64_t);
template bool orthogonalise<float>(const Orthogonal<float>&, int64_t, float*);
template bool orthogonalise<double>(const Orthogonal<double>&, int64_t, double*);

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

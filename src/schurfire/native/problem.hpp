// What is computed: the response of state-space models and its derivatives, for many models and many sequences.
//
//     x[0] = x0,   x[k+1] = A x[k] + B u[k],   y[k] = C x[k] + D u[k],   k = 0 .. steps - 1
//
// and, for a scalar function of y and x[steps] with gradients y_bar and x_end_bar, the gradients of it by the adjoint
// recurrence run backwards
//
//     l[steps] = x_end_bar,   l[k] = A' l[k+1] + C' y_bar[k]
//     A_bar = sum l[k+1] x[k]',   B_bar = sum l[k+1] u[k]',   C_bar = sum y_bar[k] x[k]',   D_bar = sum y_bar[k] u[k]'
//     u_bar[k] = B' l[k+1] + D' y_bar[k],   x0_bar = l[0].
#pragma once

#include <cstdint>

namespace schurfire {

// Which entries of A are read; the others count as zero and get the gradient zero.
enum class Form : int32_t { dense = 0, quasi_triangular = 1, block_diagonal = 2 };

inline bool in_form(Form form, int64_t i, int64_t j) {
  if (form == Form::quasi_triangular) return j >= i - 1;
  return form == Form::dense || i / 2 == j / 2;
}

// A matrix for every pair of a sequence and a model; strides count elements, a stride of zero shares the numbers.
// A vector is a matrix of one row. No data: the matrix is absent.
template <class T>
struct View {
  T* data = nullptr;
  int64_t row = 0, column = 0, sequence = 0, model = 0;

  explicit operator bool() const { return data != nullptr; }
};

template <class T>
struct Problem {
  int64_t steps, states, inputs, outputs, sequences, models;
  Form form;

  View<const T> A;
  View<const T> B;   // absent: u is added to the state as it is
  View<const T> C;   // absent: y = x
  View<const T> D;   // absent: zero
  View<const T> u;   // rows are time steps
  View<const T> x0;  // absent: zero
  View<T> x;         // the states x[0] .. x[steps - 1], rows are time steps; forwards absent: not kept
  View<T> y;         // rows are time steps; forwards absent: not wanted
  View<T> x_end;

  View<const T> y_bar;      // absent: zero
  View<const T> x_end_bar;  // absent: zero
  View<T> A_bar, B_bar, C_bar, D_bar, u_bar, x0_bar;  // absent: not wanted
};

}  // namespace schurfire

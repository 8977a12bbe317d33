// The recurrence and its adjoint for one group of lanes: every number is a vector with one entry for each lane.
//
// Steps are treated a block at a time. Within a block only  x[k+1] = A x[k] + b[k]  goes step by step; everything else
// is a product of small matrices whose rows are the steps of the block, so that a coefficient is read once for several
// steps:
//
//     b = u B',   y = x C' + u D';      backwards   f = y_bar C,   A_bar += l' x,   B_bar += l' u,   ...
//
// This file is compiled once for each instruction set, in a namespace of its own. It uses no templates of the standard
// library: of each the linker keeps one copy, which might be the one for a processor that is not there.
#include "grid.hpp"
#include "kernel.hpp"
#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

constexpr int64_t block = 8;

// The columns of row i that the form allows to be other than zero: [first, last).
template <Form form>
constexpr int64_t first_column(int64_t i) {
  if (form == Form::quasi_triangular) return i > 0 ? i - 1 : 0;
  return form == Form::block_diagonal ? i / 2 * 2 : 0;
}

template <Form form>
constexpr int64_t last_column(int64_t i, int64_t n) {
  return form == Form::block_diagonal && i / 2 * 2 + 2 < n ? i / 2 * 2 + 2 : n;
}

// x[t+1] += x[t] A' for t = 0 .. count - 1: the rows of x hold the forcing before and the states after.
template <int order, Form form, class T>
void recur(Grid<T> A_transposed, Grid<T> x, int64_t, int64_t count) {
  for (int64_t t = 0; t < count; ++t) {
    const Vector<T>* now = &x(t, 0);
    Vector<T>* next = &x(t + 1, 0);
#pragma GCC unroll 16
    for (int64_t i = 0; i < order; ++i) {
      const int64_t first = first_column<form>(i), last = last_column<form>(i, order);
      Vector<T> sum = next[i];
#pragma GCC unroll 16
      for (int64_t j = first; j < last; ++j) sum += A_transposed.data[j * order + i] * now[j];
      next[i] = sum;
    }
  }
}

// l[t] += l[t+1] A for t = count - 1 .. 0: the rows of l hold the forcing before and the costates after.
template <int order, Form form, class T>
void recur_back(Grid<T> A, Grid<T> l, int64_t, int64_t count) {
  for (int64_t t = count - 1; t >= 0; --t) {
    const Vector<T>* next = &l(t + 1, 0);
    Vector<T> sum[order];
#pragma GCC unroll 16
    for (int64_t j = 0; j < order; ++j) sum[j] = l(t, j);
#pragma GCC unroll 16
    for (int64_t i = 0; i < order; ++i) {
      const int64_t first = first_column<form>(i), last = last_column<form>(i, order);
#pragma GCC unroll 16
      for (int64_t j = first; j < last; ++j) sum[j] += A.data[i * order + j] * next[i];
    }
#pragma GCC unroll 16
    for (int64_t j = 0; j < order; ++j) l(t, j) = sum[j];
  }
}

// Both for any order: a step is a product of a row with a matrix, taken in strips of columns so that the form can bound
// the entries that count.
constexpr int64_t strip = 10;

template <Form form, class T>
void recur_any(Grid<T> A_transposed, Grid<T> x, int64_t n, int64_t count) {
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < n; i += strip) {
      const int64_t end = i + strip < n ? i + strip : n;
      const int64_t first = first_column<form>(i), last = last_column<form>(end - 1, n);
      const Grid<T> part{&A_transposed(first, i), n, 1};
      multiply(x.part(t + 1, i), x.part(t, first), part, 1, last - first, end - i, true);
    }
}

template <Form form, class T>
void recur_back_any(Grid<T> A, Grid<T> l, int64_t n, int64_t count) {
  for (int64_t t = count - 1; t >= 0; --t)
    for (int64_t j = 0; j < n; j += strip) {
      const int64_t end = j + strip < n ? j + strip : n;
      const int64_t first = form == Form::block_diagonal ? j : 0;
      const int64_t last = form == Form::block_diagonal || (form == Form::quasi_triangular && end < n) ? end : n;
      const int64_t reach = form == Form::quasi_triangular && last < n ? last + 1 : last;
      multiply(l.part(t, j), l.part(t + 1, first), A.part(first, j), 1, reach - first, end - j, true);
    }
}

template <class T>
struct Recurrence {
  void (*forward)(Grid<T>, Grid<T>, int64_t, int64_t);
  void (*backward)(Grid<T>, Grid<T>, int64_t, int64_t);
};

template <Form form, class T>
Recurrence<T> recurrence_of_form(int64_t n) {
  switch (n) {
    case 1: return {recur<1, form, T>, recur_back<1, form, T>};
    case 2: return {recur<2, form, T>, recur_back<2, form, T>};
    case 3: return {recur<3, form, T>, recur_back<3, form, T>};
    case 4: return {recur<4, form, T>, recur_back<4, form, T>};
    case 5: return {recur<5, form, T>, recur_back<5, form, T>};
    case 6: return {recur<6, form, T>, recur_back<6, form, T>};
    case 8: return {recur<8, form, T>, recur_back<8, form, T>};
    case 10: return {recur<10, form, T>, recur_back<10, form, T>};
    default: return {recur_any<form, T>, recur_back_any<form, T>};
  }
}

template <class T>
Recurrence<T> recurrence(Form form, int64_t n) {
  if (form == Form::quasi_triangular) return recurrence_of_form<Form::quasi_triangular, T>(n);
  if (form == Form::block_diagonal) return recurrence_of_form<Form::block_diagonal, T>(n);
  return recurrence_of_form<Form::dense, T>(n);
}

// Takes grids from the scratch memory, one after the other.
template <class T>
struct Scratch {
  Vector<T>* next;

  Grid<T> take(int64_t rows, int64_t columns) {
    Vector<T>* data = next;
    next += rows * columns;
    return grid<T>(data, columns);
  }
};

template <class T>
int64_t scratch_size(const Problem<T>& p) {
  const int64_t n = p.states, m = p.inputs, o = p.outputs;
  const int64_t coefficients = (n + o) * (n + m);
  return width<T> * (coefficients + (block + 1) * (2 * n + 2 * m + o));
}

template <class T>
struct GroupState {
  using V = Vector<T>;
  const Problem<T>& p;
  Group<T> group;
  int64_t n, m, o;
  Recurrence<T> step;
  Scratch<T> scratch;
  Grid<T> A, B, C, D;
  Grid<T> joint;

  // With `transposed` the coefficients are those of  x[k+1] = x[k] A' + u[k] B'  for states and inputs that are rows.
  GroupState(const Pass<T>& pass, int64_t index, T* memory, bool transposed)
      : p(pass.problem), group(pass.plan, index), n(p.states), m(p.inputs), o(p.outputs),
        step(recurrence<T>(p.form, n)), scratch{reinterpret_cast<V*>(memory)},
        joint(grid<T>(reinterpret_cast<V*>(pass.joints) + index * n, n)) {
    A = coefficients(p.A, n, n, transposed);
    B = coefficients(p.B, n, m, transposed);
    C = coefficients(p.C, o, n, transposed);
    D = coefficients(p.D, o, m, transposed);
    const Grid<T> rows = transposed ? A.transposed() : A;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (!in_form(p.form, i, j)) rows(i, j) = V{};
  }

  Grid<T> coefficients(const View<const T>& view, int64_t rows, int64_t columns, bool transposed) {
    if (!view) return {};
    const Grid<T> out = transposed ? scratch.take(columns, rows) : scratch.take(rows, columns);
    read(transposed ? out.transposed() : out, LaneView<T>(view, group, false), 0, rows, columns);
    return out;
  }
};

template <class V>
V select(V flags, V yes, V no) {
  return flags > 0 ? yes : no;
}

template <class T>
void forward(const Pass<T>& pass, int64_t index, T* memory) {
  using V = Vector<T>;
  GroupState<T> s(pass, index, memory, true);
  const int64_t n = s.n, m = s.m, o = s.o;
  const LaneView<T> inputs(s.p.u, s.group, true), states(s.p.x, s.group, true), outputs(s.p.y, s.group, true);
  const Grid<T> u = s.scratch.take(block, m), y = s.scratch.take(block, o), x = s.scratch.take(block + 1, n);

  auto advance = [&](int64_t k, int64_t count, const V* flags) {
    copy(x, s.joint, 1, n);
    read(u, inputs, k, count, m);
    s.B.data ? multiply(x.from_row(1), u, s.B, count, m, n, false) : copy(x.from_row(1), u, count, n);
    s.step.forward(s.A, x, n, count);
    if (states && !pass.joints_only) write(states, x, k, count, n, flags);
    if (outputs && !pass.joints_only) {
      if (s.C.data) {
        multiply(y, x, s.C, count, n, o, false);
        if (s.D.data) multiply(y, u, s.D, count, m, o, true);
      }
      write(outputs, s.C.data ? y : x, k, count, o, flags);
    }
    for (int64_t i = 0; i < n; ++i) s.joint(0, i) = flags ? select(*flags, x(count, i), x(0, i)) : x(count, i);
  };

  const int64_t whole = pass.plan.length - pass.plan.uneven;
  for (int64_t k = 0; k < whole; k += block) advance(k, k + block < whole ? block : whole - k, nullptr);
  if (pass.plan.uneven) advance(whole, 1, &s.group.longer);
}

template <class T>
void backward(const Pass<T>& pass, int64_t index, T* memory) {
  using V = Vector<T>;
  GroupState<T> s(pass, index, memory, false);
  const int64_t n = s.n, m = s.m, o = s.o;
  const LaneView<T> inputs(s.p.u, s.group, true), output_bars(s.p.y_bar, s.group, true);
  const LaneView<T> states(s.p.x, s.group, true), input_bars(s.p.u_bar, s.group, true);
  const Grid<T> u = s.scratch.take(block, m), g = s.scratch.take(block, o), l = s.scratch.take(block + 1, n);
  const Grid<T> x = s.scratch.take(block, n), u_bar = s.scratch.take(block, m);

  V* sums = reinterpret_cast<V*>(pass.gradients) + index * pass.entries();
  const Grid<T> A_bar = grid<T>(sums, n), B_bar = grid<T>(A_bar.data + n * n, m);
  const Grid<T> C_bar = grid<T>(B_bar.data + n * m, n), D_bar = grid<T>(C_bar.data + o * n, m);
  if (!pass.joints_only) set_zero(grid<T>(sums, pass.entries()), 1, pass.entries());

  auto retreat = [&](int64_t k, int64_t count, const V* flags) {
    for (int64_t i = 0; i < n; ++i) l(count, i) = flags ? select(*flags, s.joint(0, i), V{}) : s.joint(0, i);
    if (!s.p.y_bar) {
      set_zero(l, count, n);
    } else {
      read(g, output_bars, k, count, o);
      if (flags)
        for (int64_t i = 0; i < o; ++i) g(0, i) = select(*flags, g(0, i), V{});
      s.C.data ? multiply(l, g, s.C, count, o, n, false) : copy(l, g, count, n);
    }
    s.step.backward(s.A, l, n, count);
    if (!pass.joints_only) {
      const Grid<T> after = l.from_row(1);
      if (s.p.A_bar || s.p.C_bar) read(x, states, k, count, n);
      if (s.p.A_bar) multiply(A_bar, after.transposed(), x, n, count, n, true);
      if (s.p.B_bar || s.p.D_bar) read(u, inputs, k, count, m);
      if (s.p.B_bar) multiply(B_bar, after.transposed(), u, n, count, m, true);
      if (s.p.C_bar && s.p.y_bar) multiply(C_bar, g.transposed(), x, o, count, n, true);
      if (s.p.D_bar && s.p.y_bar) multiply(D_bar, g.transposed(), u, o, count, m, true);
      if (s.p.u_bar) {
        s.B.data ? multiply(u_bar, after, s.B, count, n, m, false) : copy(u_bar, after, count, n);
        if (s.D.data && s.p.y_bar) multiply(u_bar, g, s.D, count, o, m, true);
        write(input_bars, u_bar, k, count, m, flags);
      }
    }
    for (int64_t i = 0; i < n; ++i) s.joint(0, i) = flags ? select(*flags, l(0, i), s.joint(0, i)) : l(0, i);
  };

  const int64_t whole = pass.plan.length - pass.plan.uneven;
  if (pass.plan.uneven) retreat(whole, 1, &s.group.longer);
  for (int64_t k = (whole - 1) / block * block; whole > 0 && k >= 0; k -= block)
    retreat(k, k + block < whole ? block : whole - k, nullptr);
}

extern const Kernel<float> kernel_of_float;
extern const Kernel<double> kernel_of_double;
const Kernel<float> kernel_of_float = {width<float>, scratch_size<float>, forward<float>, backward<float>};
const Kernel<double> kernel_of_double = {width<double>, scratch_size<double>, forward<double>, backward<double>};

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

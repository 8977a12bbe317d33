// The recurrence and its adjoint for one group of lanes: every number is a vector with one entry for each lane.
//
// Steps are treated a block at a time. Within a block the states go step by step; everything else is a product of small
// matrices whose rows are the steps of the block, so that a coefficient is read once for several steps. Forwards, with
// rows z[k] = (x[k], u[k]):
//
//     x[k+1] = z[k] (A B)',   y[k] = z[k] (C D)'
//
// and backwards, with rows w[k] = (l[k+1], y_bar[k]):
//
//     l[k] = w[k] (A; C),   u_bar[k] = w[k] (B; D),   gradient of (A B; C D) += w' z.
//
// This file is compiled once for each instruction set, in a namespace of its own. It uses no functions of the standard
// library's templates: of each the linker keeps one copy, which might be the one for a processor that is not there.
#include "grid.hpp"
#include "kernel.hpp"
#include "lane_view.hpp"
#include "lanes.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

// Steps of a block: a multiple of every width, so that a block of a signal consists of whole tiles (transpose.hpp).
constexpr int64_t block = 16;

// The state at the start of each of `count` rows, one after the other in the direction of time, from the row before it:
//
//     state = (state before, input before) M,    or, without inputs,    state += (state before) M.
//
// The upper square of M is A' forwards and A backwards; entries outside of the form are not read. The rows of M are
// adjacent.
template <int order, Form form, int direction, class T>
void recur(Grid<T> M, Grid<T> rows, int64_t, int64_t inputs, int64_t count) {
  Vector<T> state[order], sum[order];
  Vector<T>* row = rows.data;
#pragma GCC unroll 16
  for (int j = 0; j < order; ++j) state[j] = row[j];
  for (; count > 0; --count) {
    Vector<T>* next = row + direction * rows.row;
#pragma GCC unroll 16
    for (int j = 0; j < order; ++j) sum[j] = inputs > 0 ? Vector<T>{} : next[j];
    for (int64_t i = order; i < order + inputs; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < order; ++j) sum[j] += row[i] * M.data[i * order + j];
#pragma GCC unroll 16
    for (int i = 0; i < order; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < order; ++j)
        if (direction > 0 ? in_form(form, j, i) : in_form(form, i, j)) sum[j] += state[i] * M.data[i * order + j];
#pragma GCC unroll 16
    for (int j = 0; j < order; ++j) next[j] = state[j] = sum[j];
    row = next;
  }
}

// The same for any order. Columns of M are taken in strips, so that the form can bound the rows of M that count.
template <Form form, int direction, class T>
void recur_any(Grid<T> M, Grid<T> rows, int64_t n, int64_t inputs, int64_t count) {
  constexpr int64_t strip = 10;
  if (inputs > 0) {
    const Grid<T> earliest = direction > 0 ? rows : rows.part(-count, 0);
    const Grid<T> forcing = earliest.part(direction > 0 ? 1 : 0, 0), given = earliest.part(direction > 0 ? 0 : 1, n);
    multiply(forcing, given, M.part(n, 0), count, inputs, n, false);
  }
  for (; count > 0; --count, rows = rows.part(direction, 0))
    for (int64_t j = 0; j < n; j += strip) {
      const int64_t end = j + strip < n ? j + strip : n;
      int64_t first = 0, last = n;
      if (form == Form::block_diagonal) first = j, last = end;
      if (form == Form::quasi_triangular && direction > 0 && j > 0) first = j - 1;
      if (form == Form::quasi_triangular && direction < 0 && end < n) last = end + 1;
      multiply(rows.part(direction, j), rows.part(0, first), M.part(first, j), 1, last - first, end - j, true);
    }
}

template <class T>
using Recurrence = void (*)(Grid<T> M, Grid<T> rows, int64_t n, int64_t inputs, int64_t count);

template <Form form, int direction, class T>
Recurrence<T> recurrence_of_form(int64_t n) {
  switch (n) {
    case 1: return recur<1, form, direction, T>;
    case 2: return recur<2, form, direction, T>;
    case 3: return recur<3, form, direction, T>;
    case 4: return recur<4, form, direction, T>;
    case 5: return recur<5, form, direction, T>;
    case 6: return recur<6, form, direction, T>;
    case 8: return recur<8, form, direction, T>;
    case 10: return recur<10, form, direction, T>;
    default: return recur_any<form, direction, T>;
  }
}

template <int direction, class T>
Recurrence<T> recurrence(Form form, int64_t n) {
  if (form == Form::quasi_triangular) return recurrence_of_form<Form::quasi_triangular, direction, T>(n);
  if (form == Form::block_diagonal) return recurrence_of_form<Form::block_diagonal, direction, T>(n);
  return recurrence_of_form<Form::dense, direction, T>(n);
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
  return width<T> * ((n + o) * (n + m) + block * (n + m) + (block + 1) * (n + m + o));
}

// What both passes need: the lanes, their coefficients, and the states at the joints.
template <class T>
struct GroupState {
  using V = Vector<T>;
  const Problem<T>& p;
  Group<T> group;
  int64_t n, m, o;
  Scratch<T> scratch;
  Grid<T> to_state;  // (A B)' forwards, (A; C) backwards: from a row to the next state
  Grid<T> to_other;  // (C D)' forwards, (B; D) backwards: from a row to outputs, or to gradients of inputs
  Grid<T> joint;

  GroupState(const Pass<T>& pass, int64_t index, T* memory, bool backwards)
      : p(pass.problem), group(pass.plan, index), n(p.states), m(p.inputs), o(p.outputs),
        scratch{reinterpret_cast<V*>(memory)}, to_state(scratch.take(n + (backwards ? o : m), n)),
        to_other(backwards ? scratch.take(n + o, m) : scratch.take(n + m, o)),
        joint(grid<T>(reinterpret_cast<V*>(pass.joints) + index * n, n)) {
    const Grid<T> A = backwards ? to_state : to_state.transposed();
    const Grid<T> B = backwards ? to_other : to_state.part(n, 0).transposed();
    const Grid<T> C = backwards ? to_state.part(n, 0) : to_other.transposed();
    const Grid<T> D = backwards ? to_other.part(n, 0) : to_other.part(n, 0).transposed();
    read(A, p.A, n, n), read(B, p.B, n, m), read(C, p.C, o, n), read(D, p.D, o, m);
    if (p.form == Form::dense) return;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (!in_form(p.form, i, j)) A(i, j) = V{};
  }

  void read(Grid<T> out, const View<const T>& view, int64_t rows, int64_t columns) const {
    if (view) LaneView<T>(view, group, columns, false).read(out, 0, rows);
  }
};

template <class V>
V select(V flags, V yes, V no) {
  return flags > 0 ? yes : no;
}

template <class T>
void forward(const Pass<T>& pass, int64_t index, T* memory) {
  using V = Vector<T>;
  GroupState<T> s(pass, index, memory, false);
  const Problem<T>& p = s.p;
  const int64_t n = s.n, m = s.m, o = s.o;
  const LaneView<T> inputs(p.u, s.group, m, true), states(p.x, s.group, n, true), outputs(p.y, s.group, o, true);
  const Grid<T> x = s.scratch.take(block + 1, n + m), u = x.part(0, n), y = s.scratch.take(block, o);
  const Recurrence<T> advance_states = recurrence<1, T>(p.form, n);

  auto advance = [&](int64_t k, int64_t count, const V* flags) {
    auto write = [&](const LaneView<T>& view, Grid<T> in) {
      if (!view || pass.joints_only) return;
      flags ? view.write_flagged(in, k, *flags) : view.write(in, k, count);
    };
    copy(x, s.joint, 1, n);
    inputs.read(u, k, count);
    if (!p.B) copy(x.part(1, 0), u, count, n);
    advance_states(s.to_state, x, n, p.B ? m : 0, count);
    write(states, x);
    if (p.C && p.y && !pass.joints_only) multiply(y, x, s.to_other, count, p.D ? n + m : n, o, false);
    write(outputs, p.C ? y : x);
    for (int64_t i = 0; i < n; ++i) s.joint(0, i) = flags ? select(*flags, x(count, i), x(0, i)) : x(count, i);
  };

  const int64_t whole = pass.plan.length - pass.plan.uneven;
  for (int64_t k = 0; k < whole; k += block) advance(k, k + block < whole ? block : whole - k, nullptr);
  if (pass.plan.uneven) advance(whole, 1, &s.group.longer);
}

template <class T>
void backward(const Pass<T>& pass, int64_t index, T* memory) {
  using V = Vector<T>;
  GroupState<T> s(pass, index, memory, true);
  const Problem<T>& p = s.p;
  const int64_t n = s.n, m = s.m, o = s.o;
  const LaneView<T> inputs(p.u, s.group, m, true), output_bars(p.y_bar, s.group, o, true);
  const LaneView<T> states(p.x, s.group, n, true), input_bars(p.u_bar, s.group, m, true);
  const Grid<T> l = s.scratch.take(block + 1, n + o), after = l.part(1, 0), y_bar = after.part(0, n);
  const Grid<T> x = s.scratch.take(block, n + m), u = x.part(0, n);
  const Recurrence<T> retreat_costates = recurrence<-1, T>(p.form, n);

  const Grid<T> sums = grid<T>(reinterpret_cast<V*>(pass.gradients) + index * pass.entries(), n + m);
  if (!pass.joints_only) set_zero(sums, n + o, n + m);
  const bool through_C = p.C && p.y_bar, through_D = p.D && p.y_bar;
  const bool wants_x = p.A_bar || p.C_bar, wants_u = p.B_bar || p.D_bar;

  auto retreat = [&](int64_t k, int64_t count, const V* flags) {
    for (int64_t i = 0; i < n; ++i) l(count, i) = flags ? select(*flags, s.joint(0, i), V{}) : s.joint(0, i);
    if (p.y_bar) {
      output_bars.read(y_bar, k, count);
      if (flags)
        for (int64_t i = 0; i < o; ++i) y_bar(0, i) = select(*flags, y_bar(0, i), V{});
      if (!p.C) copy(l, y_bar, count, n);
    } else {
      set_zero(l, count, n);
    }
    retreat_costates(s.to_state, l.part(count, 0), n, through_C ? o : 0, count);
    for (int64_t i = 0; i < n; ++i) s.joint(0, i) = flags ? select(*flags, l(0, i), s.joint(0, i)) : l(0, i);
    if (pass.joints_only) return;

    if (wants_x) {
      states.read(x, k, count);
      multiply(sums, after.transposed(), x, through_C && p.C_bar ? n + o : n, count, n, true);
    }
    if (wants_u) {
      inputs.read(u, k, count);
      multiply(sums.part(0, n), after.transposed(), u, through_D && p.D_bar ? n + o : n, count, m, true);
    }
    if (p.u_bar) {
      const Grid<T> u_bar = u;  // u itself has been used
      if (p.B) {
        multiply(u_bar, after, s.to_other, count, through_D ? n + o : n, m, false);
      } else {
        copy(u_bar, after, count, n);
        if (through_D) multiply(u_bar, y_bar, s.to_other.part(n, 0), count, o, m, true);
      }
      flags ? input_bars.write_flagged(u_bar, k, *flags) : input_bars.write(u_bar, k, count);
    }
  };

  const int64_t whole = pass.plan.length - pass.plan.uneven;
  if (pass.plan.uneven) retreat(whole, 1, &s.group.longer);
  for (int64_t k = (whole - 1) / block * block; whole > 0 && k >= 0; k -= block)
    retreat(k, k + block < whole ? block : whole - k, nullptr);
}

#define SCHURFIRE_INSTANTIATE(T)                             \
  template int64_t scratch_size<T>(const Problem<T>&);       \
  template void forward<T>(const Pass<T>&, int64_t, T*);     \
  template void backward<T>(const Pass<T>&, int64_t, T*);

SCHURFIRE_INSTANTIATE(float)
SCHURFIRE_INSTANTIATE(double)

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

// Calls the library's C entry points on many problems and compares with plain loops; run under sanitizers.
//
// Every output lies between guard numbers that must stay as they are. Sizes, forms, absent parts, layouts of memory and
// numbers of threads are drawn from a fixed sequence, so every run tests the same problems.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "orthogonal.hpp"
#include "powers.hpp"
#include "problem.hpp"

using schurfire::Form;
using schurfire::Orthogonal;
using schurfire::Powers;
using schurfire::Problem;
using schurfire::View;

extern "C" {
const char* schurfire_instruction_set();
const char* schurfire_respond_f32(const Problem<float>*, int64_t);
const char* schurfire_respond_f64(const Problem<double>*, int64_t);
const char* schurfire_differentiate_f32(const Problem<float>*, int64_t);
const char* schurfire_differentiate_f64(const Problem<double>*, int64_t);
const char* schurfire_prove_f32(const Powers<float>*, int64_t);
const char* schurfire_prove_f64(const Powers<double>*, int64_t);
const char* schurfire_orthogonalise_f32(const Orthogonal<float>*, int64_t);
const char* schurfire_orthogonalise_f64(const Orthogonal<double>*, int64_t);
}

namespace {

const char* respond(const Problem<float>& p, int64_t threads) { return schurfire_respond_f32(&p, threads); }
const char* respond(const Problem<double>& p, int64_t threads) { return schurfire_respond_f64(&p, threads); }
const char* differentiate(const Problem<float>& p, int64_t threads) { return schurfire_differentiate_f32(&p, threads); }
const char* differentiate(const Problem<double>& p, int64_t threads) { return schurfire_differentiate_f64(&p, threads); }

const char* prove(const Powers<float>& p, int64_t threads) { return schurfire_prove_f32(&p, threads); }
const char* prove(const Powers<double>& p, int64_t threads) { return schurfire_prove_f64(&p, threads); }
const char* orthogonalise(const Orthogonal<float>& p, int64_t threads) { return schurfire_orthogonalise_f32(&p, threads); }
const char* orthogonalise(const Orthogonal<double>& p, int64_t threads) {
  return schurfire_orthogonalise_f64(&p, threads);
}

std::mt19937 generator(0);

int64_t draw(int64_t first, int64_t last) { return std::uniform_int_distribution<int64_t>(first, last)(generator); }
bool chance(double probability) { return std::uniform_real_distribution<double>()(generator) < probability; }

void fail(const std::string& what, const std::string& of) {
  std::printf("%s: %s of %s\n", schurfire_instruction_set(), what.c_str(), of.c_str());
  std::exit(1);
}

enum class Layout { rows, innermost, padded };

// An array (models, sequences, rows, columns) in one of the layouts, with guards before, behind and, if padded, between.
template <class T>
struct Array {
  static constexpr int guards = 16;  // a register of the widest kind
  static constexpr T guard = T(12345);
  int64_t models, sequences, rows, columns;
  std::vector<T> numbers;
  View<T> strides;

  Array(int64_t R, int64_t S, int64_t N, int64_t m, Layout layout) : models(R), sequences(S), rows(N), columns(m) {
    if (layout == Layout::innermost) strides = {nullptr, m * S * R, S * R, R, 1};
    else if (layout == Layout::rows) strides = {nullptr, m, 1, N * m, S * N * m};
    else strides = {nullptr, 2 * m + 1, 2, N * (2 * m + 1) + 1, S * (N * (2 * m + 1) + 1) + 2};
    if (S == 1) strides.sequence = 0;  // all sequences share the matrix
    const int64_t size = layout == Layout::padded ? R * strides.model : R * S * N * m;
    numbers.assign(size + 2 * guards, guard);
  }

  View<T> view() { return {numbers.data() + guards, strides.row, strides.column, strides.sequence, strides.model}; }

  View<const T> constant() const {
    return {numbers.data() + guards, strides.row, strides.column, strides.sequence, strides.model};
  }

  T& operator()(int64_t r, int64_t s, int64_t k, int64_t j) {
    return numbers[guards + r * strides.model + s * strides.sequence + k * strides.row + j * strides.column];
  }

  template <class Function>
  void each(Function function) {
    for (int64_t r = 0; r < models; ++r)
      for (int64_t s = 0; s < sequences; ++s)
        for (int64_t k = 0; k < rows; ++k)
          for (int64_t j = 0; j < columns; ++j) function((*this)(r, s, k, j), r, s, k, j);
  }

  Array& fill(double scale) {
    std::normal_distribution<double> normal(0, scale);
    each([&](T& x, auto...) { x = static_cast<T>(normal(generator)); });
    return *this;
  }

  void compare(Array<double>& expected, const char* name, const std::string& of) {
    double largest = 1;
    expected.each([&](double x, auto...) { largest = std::fmax(largest, std::fabs(x)); });
    const double tolerance = largest * 500 * (sizeof(T) == 4 ? 1.2e-7 : 2.3e-16);
    each([&](T& x, int64_t r, int64_t s, int64_t k, int64_t j) {
      if (!(std::fabs(x - expected(r, s, k, j)) <= tolerance)) fail(std::string("wrong ") + name, of);
      x = guard;
    });
    for (T x : numbers)
      if (x != guard) fail(std::string("a number written outside of ") + name, of);
  }
};

struct Sizes {
  int64_t R, S, N, n, m, o;
  Form form;
  bool B, C, D, x0, shared;
};

template <class T>
void test(const Sizes& z, Layout layout, int64_t threads) {
  const auto [R, S, N, n, m, o, form, has_B, has_C, has_D, has_x0, is_shared] = z;
  char text[300];
  std::snprintf(text, sizeof text,
                "%zu bytes, R %ld S %ld N %ld n %ld m %ld o %ld, form %d, B %d C %d D %d x0 %d shared %d, layout %d, threads %ld",
                sizeof(T), long(R), long(S), long(N), long(n), long(m), long(o), int(form), has_B, has_C, has_D, has_x0,
                is_shared, int(layout), long(threads));
  auto array = [&](int64_t sequences, int64_t rows, int64_t columns) {
    return Array<T>(R, sequences, rows, columns, layout);
  };
  auto exact = [&](const Array<T>& like) { return Array<double>(like.models, like.sequences, like.rows, like.columns, Layout::rows); };
  auto A = array(1, n, n).fill(0.4 / std::sqrt(double(n))), B = array(1, n, m).fill(1), C = array(1, o, n).fill(1);
  auto D = array(1, o, m).fill(1), x0 = array(S, 1, n).fill(1), y_bar = array(S, N, o).fill(1), x_end_bar = array(S, 1, n).fill(1);
  auto u = Array<T>(is_shared ? 1 : R, S, N, m, layout).fill(1);
  auto y = array(S, N, o), x = array(S, N, n), x_end = array(S, 1, n);

  Problem<T> p{};
  p.steps = N, p.states = n, p.inputs = m, p.outputs = o, p.sequences = S, p.models = R, p.form = form;
  p.A = A.constant(), p.u = u.constant();
  if (is_shared) p.u.model = 0;
  if (has_B) p.B = B.constant();
  if (has_C) p.C = C.constant();
  if (has_D) p.D = D.constant();
  if (has_x0) p.x0 = x0.constant();
  p.y = y.view(), p.x = x.view(), p.x_end = x_end.view();

  // The definition, in double precision.
  auto at_A = [&](int64_t r, int64_t i, int64_t j) { return schurfire::in_form(form, i, j) ? double(A(r, 0, i, j)) : 0; };
  auto at_B = [&](int64_t r, int64_t i, int64_t j) { return has_B ? double(B(r, 0, i, j)) : double(i == j); };
  auto at_C = [&](int64_t r, int64_t i, int64_t j) { return has_C ? double(C(r, 0, i, j)) : double(i == j); };
  auto at_D = [&](int64_t r, int64_t i, int64_t j) { return has_D ? double(D(r, 0, i, j)) : 0; };
  auto at_u = [&](int64_t r, int64_t s, int64_t k, int64_t j) { return double(u(is_shared ? 0 : r, s, k, j)); };
  auto states = exact(x), outputs = exact(y), ends = exact(x_end);
  auto A_bar = exact(A), B_bar = exact(B), C_bar = exact(C), D_bar = exact(D), x0_bar = exact(x0);
  Array<double> u_bar(R, S, N, m, Layout::rows);
  for (auto* zeroed : {&A_bar, &B_bar, &C_bar, &D_bar}) zeroed->each([](double& entry, auto...) { entry = 0; });
  for (int64_t r = 0; r < R; ++r)
    for (int64_t s = 0; s < S; ++s) {
      std::vector<double> now(n), next(n);
      for (int64_t i = 0; i < n; ++i) now[i] = has_x0 ? double(x0(r, s, 0, i)) : 0;
      for (int64_t k = 0; k < N; ++k, now = next) {
        for (int64_t i = 0; i < n; ++i) states(r, s, k, i) = now[i];
        for (int64_t i = 0; i < o; ++i) {
          double& sum = outputs(r, s, k, i) = 0;
          for (int64_t j = 0; j < n; ++j) sum += at_C(r, i, j) * now[j];
          for (int64_t j = 0; j < m; ++j) sum += at_D(r, i, j) * at_u(r, s, k, j);
        }
        for (int64_t i = 0; i < n; ++i) {
          next[i] = 0;
          for (int64_t j = 0; j < n; ++j) next[i] += at_A(r, i, j) * now[j];
          for (int64_t j = 0; j < m; ++j) next[i] += at_B(r, i, j) * at_u(r, s, k, j);
        }
      }
      for (int64_t i = 0; i < n; ++i) ends(r, s, 0, i) = now[i];
    }
  if (const char* fault = respond(p, threads)) fail(fault, text);
  y.compare(outputs, "y", text), x.compare(states, "x", text), x_end.compare(ends, "x_end", text);
  p.y = {}, p.x = {};
  if (respond(p, threads)) fail("a fault", text);
  x_end.compare(ends, "x_end alone", text);

  // The adjoint, with the states as the library will read them.
  x.each([&](T& entry, int64_t r, int64_t s, int64_t k, int64_t j) { entry = static_cast<T>(states(r, s, k, j)); });
  const auto kept = x;
  p.x = x.view();
  const bool has_y_bar = chance(0.9), has_x_end_bar = chance(0.5);
  if (has_y_bar) p.y_bar = y_bar.constant();
  if (has_x_end_bar) p.x_end_bar = x_end_bar.constant();
  auto at_y_bar = [&](int64_t r, int64_t s, int64_t k, int64_t i) { return has_y_bar ? double(y_bar(r, s, k, i)) : 0; };
  for (int64_t r = 0; r < R; ++r)
    for (int64_t s = 0; s < S; ++s) {
      std::vector<double> l(n), next(n);
      for (int64_t i = 0; i < n; ++i) l[i] = has_x_end_bar ? double(x_end_bar(r, s, 0, i)) : 0;
      for (int64_t k = N - 1; k >= 0; --k, l = next) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            if (schurfire::in_form(form, i, j)) A_bar(r, 0, i, j) += l[i] * states(r, s, k, j);
        for (int64_t j = 0; j < m; ++j) {
          double& sum = u_bar(r, s, k, j) = 0;
          for (int64_t i = 0; i < n; ++i) sum += at_B(r, i, j) * l[i], B_bar(r, 0, i, j) += l[i] * at_u(r, s, k, j);
          for (int64_t i = 0; i < o; ++i) {
            sum += at_D(r, i, j) * at_y_bar(r, s, k, i);
            D_bar(r, 0, i, j) += at_y_bar(r, s, k, i) * at_u(r, s, k, j);
          }
        }
        for (int64_t i = 0; i < o; ++i)
          for (int64_t j = 0; j < n; ++j) C_bar(r, 0, i, j) += at_y_bar(r, s, k, i) * states(r, s, k, j);
        for (int64_t j = 0; j < n; ++j) {
          next[j] = 0;
          for (int64_t i = 0; i < n; ++i) next[j] += at_A(r, i, j) * l[i];
          for (int64_t i = 0; i < o; ++i) next[j] += at_C(r, i, j) * at_y_bar(r, s, k, i);
        }
      }
      for (int64_t i = 0; i < n; ++i) x0_bar(r, s, 0, i) = l[i];
    }
  auto a = array(1, n, n), b = array(1, n, m), c = array(1, o, n), d = array(1, o, m), e = array(S, 1, n), v = array(S, N, m);
  const bool wants_a = chance(0.8), wants_b = has_B && chance(0.8), wants_c = has_C && chance(0.8);
  const bool wants_d = has_D && chance(0.8), wants_e = chance(0.8), wants_v = chance(0.5);
  if (wants_a) p.A_bar = a.view();
  if (wants_b) p.B_bar = b.view();
  if (wants_c) p.C_bar = c.view();
  if (wants_d) p.D_bar = d.view();
  if (wants_e) p.x0_bar = e.view();
  if (wants_v) p.u_bar = v.view();
  if (const char* fault = differentiate(p, threads)) fail(fault, text);
  if (wants_a) a.compare(A_bar, "A_bar", text);
  if (wants_b) b.compare(B_bar, "B_bar", text);
  if (wants_c) c.compare(C_bar, "C_bar", text);
  if (wants_d) d.compare(D_bar, "D_bar", text);
  if (wants_e) e.compare(x0_bar, "x0_bar", text);
  if (wants_v) v.compare(u_bar, "u_bar", text);
  if (x.numbers != kept.numbers) fail("the states changed", text);
}

template <class T>
void test_drawn() {
  const int64_t states[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 21}, steps[] = {0, 1, 2, 15, 16, 17, 33, 64, 101, 300};
  Sizes z;
  z.n = states[draw(0, 12)], z.N = steps[draw(0, 9)], z.m = draw(1, 7), z.o = draw(1, 7);
  z.R = chance(0.4) ? 1 : draw(2, 20), z.S = chance(0.5) ? 1 : draw(2, 9);
  z.form = static_cast<Form>(draw(0, 2));
  z.B = chance(0.8), z.C = chance(0.8), z.D = z.C && chance(0.8), z.x0 = chance(0.7), z.shared = chance(0.3);
  if (!z.B) z.m = z.n;
  if (!z.C) z.o = z.n;
  test<T>(z, static_cast<Layout>(draw(0, 2)), draw(1, 2));
}

// The least row-sum norm of  A^(2^k), k <= squarings,  or infinity.
double least_norm(Array<double>& A, int64_t model, int squarings) {
  const int64_t n = A.rows;
  std::vector<double> power(n * n), square(n * n);
  for (int64_t i = 0; i < n * n; ++i) power[i] = A(model, 0, i / n, i % n);
  double least = INFINITY;
  for (int k = 0; k <= squarings; ++k, power = square) {
    double norm = 0;
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += std::fabs(power[i * n + j]);
      norm = std::fmax(norm, sum);
    }
    least = std::fmin(least, norm);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        square[i * n + j] = 0;
        for (int64_t l = 0; l < n; ++l) square[i * n + j] += power[i * n + l] * power[l * n + j];
      }
  }
  return least;
}

// The library may take the norm of rows or of columns. Proven must be what both prove at once with a margin, and nothing
// that neither proves; between lies what rounding errors hide in single precision.
template <class T>
void test_powers() {
  const int64_t n = draw(1, 20), R = draw(1, 40);
  const Layout layout = static_cast<Layout>(draw(0, 2));
  Array<T> A(R, 1, n, n, layout);
  A.fill(1);
  Array<double> exact(R, 1, n, n, Layout::rows), turned(R, 1, n, n, Layout::rows);
  A.each([&](T& entry, int64_t r, int64_t, int64_t i, int64_t j) {
    entry *= T(0.1 + 1.2 * double(r) / double(R)) / T(std::sqrt(double(n)));
    exact(r, 0, i, j) = turned(r, 0, j, i) = double(entry);
  });
  constexpr int guards = 64, squarings = 10;
  std::vector<uint8_t> flags(R + 2 * guards, 7);
  const Powers<T> question{A.constant(), n, R, T(0), T(1), T(0), T(1), squarings, flags.data() + guards};
  if (const char* fault = prove(question, draw(1, 2))) fail(fault, "powers");
  for (int64_t r = 0; r < R; ++r) {
    const bool is_clear = std::fmax(least_norm(exact, r, 0), least_norm(turned, r, 0)) < 0.9;
    const bool is_possible = std::fmin(least_norm(exact, r, squarings), least_norm(turned, r, squarings)) < 1;
    const int proven = flags[guards + r];
    if (proven > 1 || (proven == 0 && is_clear) || (proven == 1 && !is_possible))
      fail("a wrong answer", "powers of " + std::to_string(n) + " states");
    flags[guards + r] = 7;
  }
  for (uint8_t flag : flags)
    if (flag != 7) fail("a flag written outside", "powers");
}

// Rotations in planes with noise become orthogonal to rounding and stay near; matrices far away stay as they are.
template <class T>
void test_orthogonal() {
  const int64_t n = draw(1, 20), R = draw(1, 40);
  const Layout layout = static_cast<Layout>(draw(0, 2));
  Array<T> Z(R, 1, n, n, layout), Q(R, 1, n, n, layout);
  Z.fill(1), Q.fill(7);
  Z.each([&](T& entry, int64_t r, int64_t, int64_t i, int64_t j) {
    const double angle = 0.1 * double(r + 1);
    const bool paired = i / 2 == j / 2 && i / 2 * 2 + 1 < n;
    double rotation = paired ? (i == j ? std::cos(angle) : i < j ? std::sin(angle) : -std::sin(angle)) : i == j;
    if (r % 5 == 4) rotation *= 3;  // far away
    entry = T(rotation + 0.02 / double(n) * double(entry));
  });
  constexpr int guards = 64;
  std::vector<uint8_t> flags(R + 2 * guards, 7);
  const T tolerance = T(4) * T(n) * (sizeof(T) == 4 ? T(1.2e-7) : T(2.3e-16));
  const Orthogonal<T> task{Z.constant(), Q.view(), n, R, T(0.25), tolerance, 6, flags.data() + guards};
  if (const char* fault = orthogonalise(task, draw(1, 2))) fail(fault, "orthogonal");
  for (int64_t r = 0; r < R; ++r) {
    double error = 0, moved = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double dot = i == j ? -1 : 0;
        for (int64_t k = 0; k < n; ++k) dot += double(Q(r, 0, k, i)) * double(Q(r, 0, k, j));
        error += dot * dot;
        moved = std::fmax(moved, std::fabs(double(Q(r, 0, i, j)) - double(Z(r, 0, i, j))));
      }
    const bool is_far = r % 5 == 4;
    if (flags[guards + r] != !is_far || (is_far ? moved > 0 : std::sqrt(error) > 2 * tolerance || moved > 0.1))
      fail("a wrong matrix", "orthogonal of order " + std::to_string(n));
    flags[guards + r] = 7;
  }
  for (uint8_t flag : flags)
    if (flag != 7) fail("a flag written outside", "orthogonal");
  Q.each([](T& entry, auto...) { entry = Array<T>::guard; });
  for (T entry : Q.numbers)
    if (entry != Array<T>::guard) fail("a number written outside", "orthogonal");
}

}  // namespace

int main(int, char** arguments) {
  const int problems = arguments[1] ? std::atoi(arguments[1]) : 500;
  // Large enough for two threads, in both layouts; the next with stretches of uneven length.
  for (Layout layout : {Layout::rows, Layout::innermost}) {
    test<float>({64, 1, 2000, 5, 3, 3, Form::dense, true, true, true, true, false}, layout, 2);
    test<double>({33, 1, 2001, 4, 3, 2, Form::quasi_triangular, true, true, true, false, true}, layout, 2);
  }
  for (int i = 0; i < problems; ++i) test_drawn<float>(), test_drawn<double>(), test_powers<float>(), test_powers<double>();
  for (int i = 0; i < problems; ++i) test_orthogonal<float>(), test_orthogonal<double>();
  std::printf("%s: %d problems agree\n", schurfire_instruction_set(), 6 * problems + 4);
}

// Handlers for XLA's foreign function interface: the computations as operations of a compiled program.
//
// Logical shapes, for R models and S sequences: A (R, n, n), B (R, n, m), C (R, o, n), D (R, o, m), x0 (R, S, n) and
// u (R, S, N, m), or u (1, S, N, m) where all models share it; y (R, S, N, o). An absent argument has no elements.
// With `models_innermost` the axes lie in memory in the reverse order of importance to the lanes: (.., .., S, R).
#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "entry.hpp"
#include "tasks.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using schurfire::Form;
using schurfire::Problem;
using schurfire::View;

namespace {

constexpr int64_t worth_a_thread = 2'000'000;  // operations, about 50 us: waking a thread of XLA's pool takes 5 to 10 us

struct Sizes {
  int64_t models, sequences, steps, states, inputs, outputs;
};

// XLA's pool helps, but the calling thread takes work until none is left: it never waits for a task that no thread has
// begun, so a pool whose threads are all busy (or waiting like this one) cannot deadlock it.
schurfire::Parallel pool_for(ffi::ThreadPool& pool, int64_t operations) {
  const int64_t helpers = operations / worth_a_thread;
  if (helpers == 0)
    return [](int64_t count, const std::function<void(int64_t)>& work) {
      for (int64_t i = 0; i < count; ++i) work(i);
    };
  return [&pool, helpers](int64_t count, const std::function<void(int64_t)>& work) {
    const auto tasks = std::make_shared<schurfire::Tasks>(count, work);  // lives until the last helper has looked at it
    const int64_t threads = std::min<int64_t>({helpers, count - 1, pool.num_threads() - 1});
    try {
      for (int64_t i = 0; i < threads; ++i) pool.Schedule([tasks] { tasks->help(); });
    } catch (const std::exception&) {
      // No memory for more helpers: this thread does the work.
    }
    tasks->help();
    tasks->wait();
  };
}

template <class Buffer>
bool is_absent(const Buffer& buffer) {
  return buffer.element_count() == 0;
}

// Views of buffers with the given logical axes; null where the buffer has no elements.
template <class T>
struct Layout {
  bool models_innermost;

  View<T> matrix(T* data, int64_t models, int64_t rows, int64_t columns) const {
    if (models_innermost) return {data, columns * models, models, 0, models > 1 ? 1 : 0};
    return {data, columns, 1, 0, models > 1 ? rows * columns : 0};
  }
  View<T> vectors(T* data, int64_t models, int64_t sequences, int64_t columns) const {
    if (models_innermost) return {data, 0, sequences * models, models, models > 1 ? 1 : 0};
    return {data, 0, 1, columns, models > 1 ? sequences * columns : 0};
  }
  View<T> signals(T* data, int64_t models, int64_t sequences, int64_t rows, int64_t columns) const {
    if (models_innermost) return {data, columns * sequences * models, sequences * models, models, models > 1 ? 1 : 0};
    return {data, columns, 1, rows * columns, models > 1 ? sequences * rows * columns : 0};
  }
};

template <class T>
View<const T> constant(View<T> view) {
  return {view.data, view.row, view.column, view.sequence, view.model};
}

template <ffi::DataType type>
struct Arguments {
  using T = ffi::NativeType<type>;
  using Buffer = ffi::Buffer<type>;
  using Result = ffi::Result<Buffer>;

  ffi::Error error = ffi::Error::Success();
  Problem<T> problem{};
  Sizes size{};
  Layout<T> layout;

  Arguments(Buffer A, Buffer B, Buffer C, Buffer D, Buffer u, Buffer x0, int32_t form, bool models_innermost)
      : layout{models_innermost} {
    if (A.dimensions().size() != 3 || u.dimensions().size() != 4 || (!is_absent(C) && C.dimensions().size() != 3)) {
      error = ffi::Error::InvalidArgument("schurfire: A and C must have 3 axes and u 4");
      return;
    }
    const auto a = A.dimensions(), w = u.dimensions();
    size = {a[0], w[1], w[2], a[1], w[3], is_absent(C) ? a[1] : C.dimensions()[1]};
    const auto [R, S, N, n, m, o] = size;
    problem.steps = N, problem.states = n, problem.inputs = m, problem.outputs = o;
    problem.sequences = S, problem.models = R, problem.form = static_cast<Form>(form);
    expect("A", A, {R, n, n}, false);
    expect("B", B, {R, n, m}, true);
    expect("C", C, {R, o, n}, true);
    expect("D", D, {R, o, m}, true);
    expect("x0", x0, {R, S, n}, true);
    if (w[0] != 1 && w[0] != R) fail("u");
    problem.A = constant(layout.matrix(A.typed_data(), R, n, n));
    if (!is_absent(B)) problem.B = constant(layout.matrix(B.typed_data(), R, n, m));
    if (!is_absent(C)) problem.C = constant(layout.matrix(C.typed_data(), R, o, n));
    if (!is_absent(D)) problem.D = constant(layout.matrix(D.typed_data(), R, o, m));
    if (!is_absent(x0)) problem.x0 = constant(layout.vectors(x0.typed_data(), R, S, n));
    if (!is_absent(u)) problem.u = constant(layout.signals(u.typed_data(), w[0], S, N, m));
  }

  template <class AnyBuffer>
  void expect(const char* name, const AnyBuffer& buffer, std::initializer_list<int64_t> axes, bool may_be_absent) {
    if (may_be_absent && is_absent(buffer)) return;
    const auto found = buffer.dimensions();
    if (found.size() != axes.size() || !std::equal(axes.begin(), axes.end(), found.begin())) fail(name);
  }

  void fail(const char* name) {
    if (error.success()) error = ffi::Error::InvalidArgument(std::string("schurfire: the axes of ") + name + " do not fit");
  }

  template <class Computation>
  ffi::Error compute(ffi::ThreadPool& pool, Computation computation) {
    if (error.failure()) return error;
    if (const char* what = schurfire::fault(problem)) return ffi::Error::InvalidArgument(std::string("schurfire: ") + what);
    try {
      computation(problem, pool_for(pool, schurfire::operations(problem)));
    } catch (const std::exception& exception) {
      return ffi::Error::Internal(std::string("schurfire: ") + exception.what());
    }
    return ffi::Error::Success();
  }
};

template <ffi::DataType type>
ffi::Error respond(ffi::ThreadPool pool, ffi::Buffer<type> A, ffi::Buffer<type> B, ffi::Buffer<type> C,
                   ffi::Buffer<type> D, ffi::Buffer<type> u, ffi::Buffer<type> x0, ffi::Result<ffi::Buffer<type>> y,
                   ffi::Result<ffi::Buffer<type>> x_end, ffi::Result<ffi::Buffer<type>> x, int32_t form,
                   bool models_innermost) {
  Arguments<type> in(A, B, C, D, u, x0, form, models_innermost);
  if (in.error.failure()) return in.error;
  const auto [R, S, N, n, m, o] = in.size;
  in.expect("y", *y, {R, S, N, o}, true);
  in.expect("x_end", *x_end, {R, S, n}, false);
  if (!is_absent(*y)) in.problem.y = in.layout.signals(y->typed_data(), R, S, N, o);
  in.problem.x_end = in.layout.vectors(x_end->typed_data(), R, S, n);
  in.expect("x", *x, {R, S, N, n}, true);
  if (!is_absent(*x)) in.problem.x = in.layout.signals(x->typed_data(), R, S, N, n);
  return in.compute(pool, schurfire::respond<typename Arguments<type>::T>);
}

template <ffi::DataType type>
ffi::Error differentiate(ffi::ThreadPool pool, ffi::Buffer<type> A, ffi::Buffer<type> B, ffi::Buffer<type> C,
                         ffi::Buffer<type> D, ffi::Buffer<type> u, ffi::Buffer<type> x, ffi::Buffer<type> y_bar,
                         ffi::Buffer<type> x_end_bar, ffi::Result<ffi::Buffer<type>> A_bar,
                         ffi::Result<ffi::Buffer<type>> B_bar, ffi::Result<ffi::Buffer<type>> C_bar,
                         ffi::Result<ffi::Buffer<type>> D_bar, ffi::Result<ffi::Buffer<type>> u_bar,
                         ffi::Result<ffi::Buffer<type>> x0_bar, int32_t form, bool models_innermost) {
  Arguments<type> in(A, B, C, D, u, x_end_bar, form, models_innermost);
  if (in.error.failure()) return in.error;
  const auto [R, S, N, n, m, o] = in.size;
  in.problem.x_end_bar = in.problem.x0;
  in.problem.x0 = {};
  in.expect("x", x, {R, S, N, n}, false);
  in.expect("y_bar", y_bar, {R, S, N, o}, true);
  in.expect("A_bar", *A_bar, {R, n, n}, true);
  in.expect("B_bar", *B_bar, {R, n, m}, true);
  in.expect("C_bar", *C_bar, {R, o, n}, true);
  in.expect("D_bar", *D_bar, {R, o, m}, true);
  in.expect("u_bar", *u_bar, {R, S, N, m}, true);
  in.expect("x0_bar", *x0_bar, {R, S, n}, true);
  auto& p = in.problem;
  if (!is_absent(y_bar)) p.y_bar = constant(in.layout.signals(y_bar.typed_data(), R, S, N, o));
  if (!is_absent(*A_bar)) p.A_bar = in.layout.matrix(A_bar->typed_data(), R, n, n);
  if (!is_absent(*B_bar)) p.B_bar = in.layout.matrix(B_bar->typed_data(), R, n, m);
  if (!is_absent(*C_bar)) p.C_bar = in.layout.matrix(C_bar->typed_data(), R, o, n);
  if (!is_absent(*D_bar)) p.D_bar = in.layout.matrix(D_bar->typed_data(), R, o, m);
  if (!is_absent(*u_bar)) p.u_bar = in.layout.signals(u_bar->typed_data(), R, S, N, m);
  if (!is_absent(*x0_bar)) p.x0_bar = in.layout.vectors(x0_bar->typed_data(), R, S, n);
  p.x = in.layout.signals(x.typed_data(), R, S, N, n);
  return in.compute(pool, schurfire::differentiate<typename Arguments<type>::T>);
}

template <class Buffer>
bool is_stack_of_square(const Buffer& A) {
  const auto axes = A.dimensions();
  return axes.size() == 3 && axes[1] == axes[2] && !schurfire::fault_of_stack(axes[0], axes[1]);
}

template <class Computation, class Question>
ffi::Error answered(ffi::ThreadPool& pool, Computation compute, const Question& question) {
  try {
    compute(question, pool_for(pool, schurfire::operations(question)));
  } catch (const std::exception& exception) {
    return ffi::Error::Internal(std::string("schurfire: ") + exception.what());
  }
  return ffi::Error::Success();
}

template <ffi::DataType type>
ffi::Error prove(ffi::ThreadPool pool, ffi::Buffer<type> A, ffi::Result<ffi::Buffer<ffi::PRED>> proven, double centre,
                 double scale, double lost, double doubt, int32_t squarings, bool models_innermost) {
  using T = ffi::NativeType<type>;
  const auto axes = A.dimensions();
  if (!is_stack_of_square(A) || proven->element_count() != static_cast<size_t>(axes[0]))
    return ffi::Error::InvalidArgument("schurfire: A must be (R, n, n) and the flags (R,)");
  schurfire::Powers<T> powers{};
  powers.A = constant(Layout<T>{models_innermost}.matrix(A.typed_data(), axes[0], axes[1], axes[1]));
  powers.n = axes[1], powers.models = axes[0];
  powers.centre = static_cast<T>(centre), powers.scale = static_cast<T>(scale), powers.lost = static_cast<T>(lost);
  powers.doubt = static_cast<T>(doubt), powers.squarings = squarings;
  powers.proven = reinterpret_cast<uint8_t*>(proven->typed_data());
  return answered(pool, schurfire::prove<T>, powers);
}

template <ffi::DataType type>
ffi::Error orthogonalise(ffi::ThreadPool pool, ffi::Buffer<type> Z, ffi::Result<ffi::Buffer<type>> Q,
                         ffi::Result<ffi::Buffer<ffi::PRED>> near, double reach, double tolerance, int32_t steps,
                         bool models_innermost) {
  using T = ffi::NativeType<type>;
  const auto axes = Z.dimensions();
  if (!is_stack_of_square(Z) || Q->element_count() != Z.element_count() ||
      near->element_count() != static_cast<size_t>(axes[0]))
    return ffi::Error::InvalidArgument("schurfire: Z and Q must be (R, n, n) and the flags (R,)");
  const Layout<T> layout{models_innermost};
  schurfire::Orthogonal<T> matrices{};
  matrices.Z = constant(layout.matrix(Z.typed_data(), axes[0], axes[1], axes[1]));
  matrices.Q = layout.matrix(Q->typed_data(), axes[0], axes[1], axes[1]);
  matrices.n = axes[1], matrices.models = axes[0];
  matrices.reach = static_cast<T>(reach), matrices.tolerance = static_cast<T>(tolerance), matrices.steps = steps;
  matrices.near = reinterpret_cast<uint8_t*>(near->typed_data());
  return answered(pool, schurfire::orthogonalise<T>, matrices);
}

}  // namespace

#pragma GCC visibility push(default)

#define SCHURFIRE_HANDLERS(suffix, type)                                                        \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(schurfire_xla_respond_##suffix, respond<type>,                  \
                                ffi::Ffi::Bind()                                                \
                                    .Ctx<ffi::ThreadPool>()                                     \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Attr<int32_t>("form")                                      \
                                    .Attr<bool>("models_innermost"));                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(schurfire_xla_differentiate_##suffix, differentiate<type>,      \
                                ffi::Ffi::Bind()                                                \
                                    .Ctx<ffi::ThreadPool>()                                     \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Attr<int32_t>("form")                                      \
                                    .Attr<bool>("models_innermost"));                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(schurfire_xla_prove_##suffix, prove<type>,                      \
                                ffi::Ffi::Bind()                                                \
                                    .Ctx<ffi::ThreadPool>()                                     \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<ffi::PRED>>()                              \
                                    .Attr<double>("centre")                                     \
                                    .Attr<double>("scale")                                      \
                                    .Attr<double>("lost")                                       \
                                    .Attr<double>("doubt")                                      \
                                    .Attr<int32_t>("squarings")                                 \
                                    .Attr<bool>("models_innermost"));                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(schurfire_xla_orthogonalise_##suffix, orthogonalise<type>,      \
                                ffi::Ffi::Bind()                                                \
                                    .Ctx<ffi::ThreadPool>()                                     \
                                    .Arg<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<type>>()                                   \
                                    .Ret<ffi::Buffer<ffi::PRED>>()                              \
                                    .Attr<double>("reach")                                      \
                                    .Attr<double>("tolerance")                                  \
                                    .Attr<int32_t>("steps")                                     \
                                    .Attr<bool>("models_innermost"));

SCHURFIRE_HANDLERS(f32, ffi::F32)
SCHURFIRE_HANDLERS(f64, ffi::F64)

#pragma GCC visibility pop

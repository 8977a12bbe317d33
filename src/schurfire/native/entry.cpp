#include "entry.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernel.hpp"
#include "plan.hpp"

namespace schurfire {

#define SCHURFIRE_DECLARE(instructions)          \
  namespace instructions {                       \
  extern const Kernel<float> kernel_of_float;    \
  extern const Kernel<double> kernel_of_double;  \
  }

SCHURFIRE_DECLARE(baseline)
#ifdef SCHURFIRE_X86
SCHURFIRE_DECLARE(avx2)
SCHURFIRE_DECLARE(avx512)
#endif

namespace {

// Memory aligned to whole cache lines.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t size)
      : data_(static_cast<T*>(std::aligned_alloc(64, (size * sizeof(T) + 127) / 64 * 64))) {
    if (!data_) throw std::bad_alloc();
  }
  T* data() const { return data_.get(); }
  T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
};

template <class T>
const Kernel<T>& choose(const Kernel<float>& of_float, const Kernel<double>& of_double) {
  if constexpr (sizeof(T) == sizeof(float)) return of_float;
  else return of_double;
}

bool allowed(const char* instructions) {
  const char* most = std::getenv("SCHURFIRE_INSTRUCTIONS");  // tests run every kernel that the processor can run
  return !most || !*most || !std::strcmp(most, instructions) || !std::strcmp(most, "avx512");
}

enum class Instructions { baseline, avx2, avx512 };

Instructions detect() {
#ifdef SCHURFIRE_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512 && allowed("avx512")) return Instructions::avx512;
  if (avx2 && allowed("avx2")) return Instructions::avx2;
#endif
  return Instructions::baseline;
}

Instructions instructions() {
  static const Instructions found = detect();
  return found;
}

template <class T>
const Kernel<T>& kernel() {
#ifdef SCHURFIRE_X86
  if (instructions() == Instructions::avx512) return choose<T>(avx512::kernel_of_float, avx512::kernel_of_double);
  if (instructions() == Instructions::avx2) return choose<T>(avx2::kernel_of_float, avx2::kernel_of_double);
#endif
  return choose<T>(baseline::kernel_of_float, baseline::kernel_of_double);
}

template <class T>
using Matrix = std::vector<T>;  // square, row by row

template <class T>
Matrix<T> product(const Matrix<T>& left, const Matrix<T>& right, int64_t n) {
  Matrix<T> out(n * n, T(0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * n + k] * right[k * n + j];
  return out;
}

// A to a power of at least 1, by repeated squaring.
template <class T>
Matrix<T> power(Matrix<T> A, int64_t exponent, int64_t n) {
  Matrix<T> result;
  for (;; A = product(A, A, n)) {
    if (exponent & 1) result = result.empty() ? A : product(result, A, n);
    if ((exponent >>= 1) == 0) return result;
  }
}

template <class T>
Matrix<T> state_matrix(const Problem<T>& p, int64_t model) {
  Matrix<T> A(p.states * p.states, T(0));
  for (int64_t i = 0; i < p.states; ++i)
    for (int64_t j = 0; j < p.states; ++j)
      if (in_form(p.form, i, j)) A[i * p.states + j] = p.A.data[i * p.A.row + j * p.A.column + model * p.A.model];
  return A;
}

// The states at the joints of the stretches, in the order in which the kernels read them.
template <class T>
class Joints {
 public:
  Joints(const Problem<T>& problem, const Plan& plan)
      : n_(problem.states), width_(plan.width), values_(plan.groups * plan.width * problem.states) {
    std::memset(values_.data(), 0, sizeof(T) * plan.groups * plan.width * n_);
  }
  T* data() const { return values_.data(); }
  // The state of a lane; its entries are `width` apart.
  T* state(int64_t lane) const { return values_.data() + lane / width_ * n_ * width_ + lane % width_; }

 private:
  int64_t n_, width_;
  Buffer<T> values_;
};

template <class T>
T entry_or_zero(const View<const T>& view, int64_t column, int64_t sequence, int64_t model) {
  return view ? view.data[column * view.column + sequence * view.sequence + model * view.model] : T(0);
}

// From what each stretch adds to its end when run from zero to the states that the stretches start from.
// Backwards the powers are those of A' and the stretches follow each other in reverse.
template <class T>
void connect(const Problem<T>& p, const Plan& plan, const View<const T>& first, bool backwards, const Joints<T>& joints) {
  const int64_t n = p.states, last = plan.stretches - 1;
  std::vector<T> state(n), next(n);
  for (int64_t model = 0; model < p.models; ++model) {
    Matrix<T> shorter, longer;
    if (last > 0) {
      const Matrix<T> A = state_matrix(p, model);
      const int64_t length = plan.length - plan.uneven;
      shorter = power(A, length, n);
      longer = plan.uneven ? product(shorter, A, n) : shorter;
    }
    for (int64_t sequence = 0; sequence < p.sequences; ++sequence) {
      for (int64_t i = 0; i < n; ++i) state[i] = entry_or_zero(first, i, sequence, model);
      for (int64_t step = 0; step <= last; ++step) {
        const int64_t stretch = backwards ? last - step : step;
        T* joint = joints.state(plan.lane(sequence, stretch, model));
        if (step < last) {
          const Matrix<T>& P = plan.size(stretch) == plan.length ? longer : shorter;
          for (int64_t i = 0; i < n; ++i) {
            T sum = joint[i * plan.width];
            for (int64_t j = 0; j < n; ++j) sum += (backwards ? P[j * n + i] : P[i * n + j]) * state[j];
            next[i] = sum;
          }
        }
        for (int64_t i = 0; i < n; ++i) joint[i * plan.width] = state[i];
        state.swap(next);
      }
    }
  }
}

template <class T>
using PassOfGroup = void (*)(const Pass<T>&, int64_t, T*);

// One or two runs over all groups; leaves the ends of the stretches in the joints.
template <class T>
void run(const Problem<T>& p, const Plan& plan, PassOfGroup<T> pass_of_group, bool backwards, const Joints<T>& joints,
         T* gradients, const Parallel& parallel) {
  const int64_t scratch = kernel<T>().scratch(p);
  auto over_groups = [&](bool joints_only) {
    const Pass<T> pass{p, plan, joints_only, joints.data(), gradients};
    parallel(plan.groups, [&](int64_t group) { pass_of_group(pass, group, Buffer<T>(scratch).data()); });
  };
  if (plan.stretches > 1) over_groups(true);
  connect(p, plan, backwards ? p.x_end_bar : p.x0, backwards, joints);
  over_groups(false);
}

template <class T>
void write_ends(const Problem<T>& p, const Plan& plan, const View<T>& out, int64_t stretch, const Joints<T>& joints) {
  if (!out) return;
  for (int64_t sequence = 0; sequence < p.sequences; ++sequence)
    for (int64_t model = 0; model < p.models; ++model) {
      const T* joint = joints.state(plan.lane(sequence, stretch, model));
      T* end = out.data + sequence * out.sequence + model * out.model;
      for (int64_t i = 0; i < p.states; ++i) end[i * out.column] = joint[i * plan.width];
    }
}

// A part of the gradient of (A B; C D), with its first entry at (row, column): the sum over all lanes of a model, always
// in the same order, whatever the threads did.
template <class T>
void write_gradient(const Problem<T>& p, const Plan& plan, const View<T>& out, int64_t row, int64_t column, const T* sums) {
  if (!out) return;
  const int64_t all_columns = p.states + p.inputs, entries = (p.states + p.outputs) * all_columns;
  const int64_t rows = row ? p.outputs : p.states, columns = column ? p.inputs : p.states;
  for (int64_t lane = 0, count; lane < plan.lanes; lane += count) {  // neighbours: different models in one group
    const int64_t model = plan.model(lane), in_group = lane % plan.width;
    count = std::min({plan.models - model, plan.width - in_group, plan.lanes - lane});
    const T* of_group = sums + (lane / plan.width * entries + row * all_columns + column) * plan.width + in_group;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const T* from = of_group + (i * all_columns + j) * plan.width;
        T* to = out.data + i * out.row + j * out.column + model * out.model;
        for (int64_t k = 0; k < count; ++k) to[k * out.model] = (lane < plan.models ? T(0) : to[k * out.model]) + from[k];
      }
  }
}

template <class T>
void clear_outside(const Problem<T>& p) {
  if (p.A_bar)
    for (int64_t i = 0; i < p.states; ++i)
      for (int64_t j = 0; j < p.states; ++j)
        for (int64_t model = 0; model < p.models && !in_form(p.form, i, j); ++model)
          p.A_bar.data[i * p.A_bar.row + j * p.A_bar.column + model * p.A_bar.model] = T(0);
}

// work(model, scratch memory) for each model.
template <class T, class Work>
void of_each_model(int64_t models, int64_t scratch, const Parallel& parallel, Work work) {
  constexpr int64_t together = 4;  // models that share scratch memory
  parallel((models + together - 1) / together, [&](int64_t task) {
    const Buffer<T> memory(scratch);
    const int64_t last = std::min(models, (task + 1) * together);
    for (int64_t model = task * together; model < last; ++model) work(model, memory.data());
  });
}

}  // namespace

template <class T>
const char* fault(const Problem<T>& p) {
  if (p.steps < 0 || p.states < 1 || p.inputs < 1 || p.outputs < 1 || p.sequences < 1 || p.models < 1)
    return "a size is not positive";
  if (p.form != Form::dense && p.form != Form::quasi_triangular && p.form != Form::block_diagonal)
    return "the form is unknown";
  if (!p.A) return "A is missing";
  if (!p.u && p.steps > 0) return "u is missing";
  if (!p.B && p.inputs != p.states) return "B is missing, but inputs and states differ in number";
  if (!p.C && p.outputs != p.states) return "C is missing, but outputs and states differ in number";
  if (!p.C && p.D) return "D is given without C";
  // Below these bounds no product of sizes overflows, here or in the plan: not even the operations, 2^60 at most.
  const int64_t largest = int64_t(1) << 40;
  for (int64_t size : {p.steps, p.states, p.inputs, p.outputs, p.sequences, p.models})
    if (size > largest) return "the sizes are too large";
  const int64_t channels = p.states + p.inputs + p.outputs;
  for (int64_t rows : {p.steps + 1, channels}) {
    int64_t room = largest;
    for (int64_t size : {rows, channels, p.sequences, p.models})
      if ((room /= size) < 1) return "the sizes are too large";
  }
  return nullptr;
}

template <class T>
int64_t operations(const Problem<T>& p) {
  return p.steps * p.sequences * p.models * (p.states + p.outputs) * (p.states + p.inputs);
}

template <class T>
void respond(const Problem<T>& p, const Parallel& parallel) {
  const Plan plan = make_plan(p, kernel<T>().width, false);
  const Joints<T> joints(p, plan);
  run<T>(p, plan, kernel<T>().forward, false, joints, nullptr, parallel);
  write_ends(p, plan, p.x_end, plan.stretches - 1, joints);
}

template <class T>
void differentiate(const Problem<T>& p, const Parallel& parallel) {
  const Plan plan = make_plan(p, kernel<T>().width, true);
  const Joints<T> joints(p, plan);
  const int64_t n = p.states;
  const Buffer<T> sums(plan.groups * plan.width * (n + p.outputs) * (n + p.inputs));
  run<T>(p, plan, kernel<T>().backward, true, joints, sums.data(), parallel);
  write_ends(p, plan, p.x0_bar, 0, joints);
  write_gradient(p, plan, p.A_bar, 0, 0, sums.data());
  write_gradient(p, plan, p.B_bar, 0, n, sums.data());
  write_gradient(p, plan, p.C_bar, n, 0, sums.data());
  write_gradient(p, plan, p.D_bar, n, n, sums.data());
  clear_outside(p);
}

const char* fault_of_stack(int64_t models, int64_t n) {
  if (models < 1 || n < 1) return "a size is not positive";
  return n > 20'000 || models > (int64_t(1) << 60) / (16 * n * n * n) ? "the sizes are too large" : nullptr;
}

template <class T>
void prove(const Powers<T>& powers, const Parallel& parallel) {
  of_each_model<T>(powers.models, kernel<T>().powers_scratch(powers.n), parallel, [&](int64_t model, T* scratch) {
    powers.proven[model] = kernel<T>().powers_prove(powers, model, scratch);
  });
}

template <class T>
void orthogonalise(const Orthogonal<T>& matrices, const Parallel& parallel) {
  of_each_model<T>(matrices.models, kernel<T>().orthogonal_scratch(matrices.n), parallel, [&](int64_t model, T* scratch) {
    matrices.near[model] = kernel<T>().orthogonalise(matrices, model, scratch);
  });
}

const char* instruction_set() {
  switch (instructions()) {
    case Instructions::avx512: return "avx512";
    case Instructions::avx2: return "avx2";
    default: return "baseline";
  }
}

#define SCHURFIRE_INSTANTIATE(T)                                       \
  template const char* fault<T>(const Problem<T>&);                    \
  template int64_t operations<T>(const Problem<T>&);                   \
  template void respond<T>(const Problem<T>&, const Parallel&);        \
  template void differentiate<T>(const Problem<T>&, const Parallel&);  \
  template void prove<T>(const Powers<T>&, const Parallel&);           \
  template void orthogonalise<T>(const Orthogonal<T>&, const Parallel&);

SCHURFIRE_INSTANTIATE(float)
SCHURFIRE_INSTANTIATE(double)

}  // namespace schurfire

// Plain C entry points, for callers that hold pointers: NumPy arrays and PyTorch tensors on CPU.
#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "entry.hpp"
#include "tasks.hpp"

#if defined(_WIN32)
#define SCHURFIRE_EXPORT extern "C" __declspec(dllexport)
#else
#define SCHURFIRE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

using schurfire::Orthogonal;
using schurfire::Powers;
using schurfire::Problem;

constexpr int64_t worth_a_thread = 4'000'000;  // operations, about 0.1 ms: starting a thread takes 10 to 30 us

schurfire::Parallel threads_for(int64_t operations, int64_t most) {
  const int64_t useful = 1 + operations / worth_a_thread;
  const int64_t threads = std::max<int64_t>(1, std::min(most, useful));
  return [threads](int64_t count, const std::function<void(int64_t)>& work) {
    schurfire::Tasks tasks(count, work);
    std::vector<std::thread> helpers;
    helpers.reserve(threads);
    try {
      for (int64_t i = 1; i < threads && i < count; ++i) helpers.emplace_back([&tasks] { tasks.help(); });
    } catch (const std::exception&) {
      // No more threads can be had: those that there are do the work.
    }
    tasks.help();
    for (std::thread& helper : helpers) helper.join();
    tasks.wait();
  };
}

// Null, or what went wrong.
template <class T, class Computation>
const char* guarded(const Problem<T>* problem, int64_t threads, Computation compute) {
  if (const char* fault = schurfire::fault(*problem)) return fault;
  try {
    compute(*problem, threads_for(schurfire::operations(*problem), threads));
    return nullptr;
  } catch (const std::exception&) {
    return "not enough memory";
  }
}

using schurfire::fault_of_stack;

template <class T>
const char* prove(const Powers<T>* powers, int64_t threads) {
  if (!powers->A || !powers->proven) return "an array is missing";
  if (const char* fault = fault_of_stack(powers->models, powers->n)) return fault;
  try {
    schurfire::prove(*powers, threads_for(schurfire::operations(*powers), threads));
    return nullptr;
  } catch (const std::exception&) {
    return "not enough memory";
  }
}

template <class T>
const char* orthogonalise(const Orthogonal<T>* matrices, int64_t threads) {
  if (!matrices->Z || !matrices->Q || !matrices->near) return "an array is missing";
  if (const char* fault = fault_of_stack(matrices->models, matrices->n)) return fault;
  try {
    schurfire::orthogonalise(*matrices, threads_for(schurfire::operations(*matrices), threads));
    return nullptr;
  } catch (const std::exception&) {
    return "not enough memory";
  }
}

}  // namespace

SCHURFIRE_EXPORT const char* schurfire_instruction_set() { return schurfire::instruction_set(); }

#define SCHURFIRE_C_API(T, suffix)                                                                                 \
  SCHURFIRE_EXPORT const char* schurfire_respond_##suffix(const Problem<T>* problem, int64_t threads) {            \
    return guarded(problem, threads, schurfire::respond<T>);                                                       \
  }                                                                                                                \
  SCHURFIRE_EXPORT const char* schurfire_differentiate_##suffix(const Problem<T>* problem, int64_t threads) {      \
    return guarded(problem, threads, schurfire::differentiate<T>);                                                 \
  }                                                                                                                \
  SCHURFIRE_EXPORT const char* schurfire_prove_##suffix(const Powers<T>* powers, int64_t threads) {                \
    return prove(powers, threads);                                                                                 \
  }                                                                                                                \
  SCHURFIRE_EXPORT const char* schurfire_orthogonalise_##suffix(const Orthogonal<T>* matrices, int64_t threads) {  \
    return orthogonalise(matrices, threads);                                                                       \
  }

SCHURFIRE_C_API(float, f32)
SCHURFIRE_C_API(double, f64)

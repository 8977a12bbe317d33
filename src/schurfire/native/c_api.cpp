// Plain C entry points, for callers that hold pointers: NumPy arrays and PyTorch tensors on CPU.
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "entry.hpp"

#if defined(_WIN32)
#define SCHURFIRE_EXPORT extern "C" __declspec(dllexport)
#else
#define SCHURFIRE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace {

using schurfire::Problem;

constexpr int64_t worth_a_thread = 4'000'000;  // operations, about 0.1 ms: starting a thread takes 10 to 30 us

template <class T>
schurfire::Parallel threads_for(const Problem<T>& problem, int64_t most) {
  const int64_t useful = 1 + schurfire::operations(problem) / worth_a_thread;
  const int64_t threads = most < useful ? most : useful;
  return [threads](int64_t count, const std::function<void(int64_t)>& work) {
    std::atomic<int64_t> next{0};
    auto drain = [&] {
      for (int64_t i = next++; i < count; i = next++) work(i);
    };
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads && i < count; ++i) others.emplace_back(drain);
    drain();
    for (std::thread& other : others) other.join();
  };
}

// Null, or what went wrong.
template <class T, class Computation>
const char* guarded(const Problem<T>* problem, int64_t threads, Computation compute) {
  if (const char* fault = schurfire::fault(*problem)) return fault;
  try {
    compute(*problem, threads_for(*problem, threads));
    return nullptr;
  } catch (const std::exception&) {
    return "not enough memory, or no thread could be started";
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
  }

SCHURFIRE_C_API(float, f32)
SCHURFIRE_C_API(double, f64)

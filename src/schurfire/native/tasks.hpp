// Numbered tasks, of which every thread that helps takes one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace schurfire {

class Tasks {
 public:
  // `work` must live until `wait` has returned.
  Tasks(int64_t count, const std::function<void(int64_t)>& work) : count_(count), work_(work) {}

  // Does tasks until all are taken. A thread that comes when that is so touches nothing but this object.
  void help() noexcept {
    for (int64_t i = next_++; i < count_; i = next_++) {
      std::exception_ptr failure;
      try {
        work_(i);
      } catch (...) {
        failure = std::current_exception();
      }
      std::lock_guard<std::mutex> lock(mutex_);
      if (failure) failure_ = failure;
      if (++done_ == count_) all_done_.notify_all();
    }
  }

  // Returns when all tasks are done; throws what one of them has thrown.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return done_ == count_; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const int64_t count_;
  const std::function<void(int64_t)>& work_;
  std::atomic<int64_t> next_{0};
  int64_t done_ = 0;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable all_done_;
};

}  // namespace schurfire

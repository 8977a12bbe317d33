// Vectors of lanes, and how they are read from and written to ordinary arrays.
#pragma once

#include "plan.hpp"
#include "problem.hpp"

// One compilation for each instruction set, each in a namespace of its own.
#ifndef SCHURFIRE_INSTRUCTIONS
#define SCHURFIRE_INSTRUCTIONS baseline
#define SCHURFIRE_REGISTER_BYTES 16
#endif

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
constexpr int width = SCHURFIRE_REGISTER_BYTES / sizeof(T);

// A vector of lanes; it may lie at any address that a T may lie at.
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(SCHURFIRE_REGISTER_BYTES), aligned(alignof(T)), may_alias));
};

template <class T>
using Vector = typename VectorOf<T>::type;

// The lanes of one group. The last group may have fewer than a register holds.
template <class T>
struct Group {
  int count;
  int64_t model[width<T>], sequence[width<T>], start[width<T>];
  Vector<T> longer{};  // 1 in the lanes whose stretch is of full length, 0 in the others

  Group(const Plan& plan, int64_t index) {
    const int64_t first = index * width<T>, left = plan.lanes - first;
    count = left < width<T> ? static_cast<int>(left) : width<T>;
    int64_t m = plan.model(first), k = plan.stretch(first), s = plan.sequence(first);
    for (int i = 0; i < count; ++i) {
      model[i] = m, sequence[i] = s, start[i] = plan.start(k);
      longer[i] = plan.size(k) == plan.length;
      if (++m == plan.models) m = 0, ++k;
      if (k == plan.stretches) k = 0, ++s;
    }
  }
};

// A matrix in memory for each lane of a group. With `in_time` the rows are steps, counted from the lane's stretch on.
template <class T>
class LaneView {
 public:
  template <class Element>
  LaneView(const View<Element>& view, const Group<T>& group, bool in_time)
      : data_(const_cast<T*>(view.data)), row_(view.row), column_(view.column), count_(group.count) {
    for (int i = 0; i < count_; ++i) {
      offset_[i] = group.sequence[i] * view.sequence + group.model[i] * view.model;
      if (in_time) offset_[i] += group.start[i] * view.row;
    }
    contiguous_ = count_ == width<T>;
    for (int i = 1; i < count_; ++i) contiguous_ = contiguous_ && offset_[i] == offset_[0] + i;
  }

  explicit operator bool() const { return data_ != nullptr; }

  // Lanes beyond the last one read as zero.
  Vector<T> load(int64_t i, int64_t j) const {
    const T* entry = data_ + i * row_ + j * column_;
    Vector<T> value{};
    if (contiguous_) {
      __builtin_memcpy(&value, entry + offset_[0], sizeof value);
    } else {
      for (int lane = 0; lane < count_; ++lane) value[lane] = entry[offset_[lane]];
    }
    return value;
  }

  void store(int64_t i, int64_t j, Vector<T> value) const {
    T* entry = data_ + i * row_ + j * column_;
    if (contiguous_) {
      __builtin_memcpy(entry + offset_[0], &value, sizeof value);
    } else {
      for (int lane = 0; lane < count_; ++lane) entry[offset_[lane]] = value[lane];
    }
  }

  // Only the lanes whose flag is set; the flags are vectors of ones and zeros.
  void store(int64_t i, int64_t j, Vector<T> value, Vector<T> flags) const {
    T* entry = data_ + i * row_ + j * column_;
    for (int lane = 0; lane < count_; ++lane)
      if (flags[lane] > 0) entry[offset_[lane]] = value[lane];
  }

 private:
  T* data_;
  int64_t row_, column_;
  int64_t offset_[width<T>];
  int count_;
  bool contiguous_;
};

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

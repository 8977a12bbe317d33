// Matrices in ordinary memory, one for each lane of a group, read into and written from grids of vectors.
//
// A vector gathers one number from each lane's matrix. How that is done depends on where the lanes' matrices lie:
//
//     whole    at consecutive numbers: a vector of memory is a vector of lanes;
//     runs     the same in pieces, or several lanes share a matrix: pieces of vectors are copied, or filled;
//     tiles    anywhere, but each matrix is one piece of memory: squares of numbers are transposed in registers;
//     numbers  anywhere: one number after the other.
#pragma once

#include "grid.hpp"
#include "lanes.hpp"
#include "transpose.hpp"

namespace schurfire::SCHURFIRE_INSTRUCTIONS {

template <class T>
class LaneView {
 public:
  using V = Vector<T>;

  // With `in_time` the rows are steps, counted from each lane's stretch on.
  template <class Element>
  LaneView(const View<Element>& view, const Group<T>& group, int64_t columns, bool in_time)
      : data_(const_cast<T*>(view.data)), row_(view.row), column_(view.column), columns_(columns), count_(group.count) {
    if (!data_) return;
    for (int i = 0; i < count_; ++i) {
      offset_[i] = group.sequence[i] * view.sequence + group.model[i] * view.model;
      if (in_time) offset_[i] += group.start[i] * view.row;
    }
    bool is_whole = count_ == width<T>;
    for (int i = 0; i < count_; ++i) is_whole &= offset_[i] == offset_[0] + i;
    if (is_whole) {
      access_ = Access::whole;
      return;
    }
    find_runs();
    const bool in_one_piece = row_ == columns && (column_ == 1 || columns == 1);
    if (2 * runs_ <= count_) access_ = Access::runs;
    else if (in_one_piece && 4 * count_ > width<T>) access_ = Access::tiles;  // fewer lanes leave most of a tile unused
    else access_ = Access::numbers;
  }

  explicit operator bool() const { return data_ != nullptr; }

  // Rows `first`, `first + 1`, ... of all lanes. Lanes beyond the last one get numbers that mean nothing, but finite
  // ones where all others are.
  void read(Grid<T> out, int64_t first, int64_t rows) const {
    const T* data = data_ + first * row_;
    switch (access_) {
      case Access::whole:
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns_; ++j)
            __builtin_memcpy(&out(i, j), data + i * row_ + j * column_ + offset_[0], sizeof(V));
        break;
      case Access::runs:
        if (count_ < width<T>) set_zero(out, rows, columns_);
        for (int k = 0; k < runs_; ++k) read_run(out, data, run_[k], rows);
        break;
      case Access::tiles:
        if (rows * columns_ >= width<T>) {
          read_tiles(out, data, rows);
          break;
        }
        [[fallthrough]];
      case Access::numbers:
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns_; ++j) {
            V value{};
            for (int lane = 0; lane < count_; ++lane) value[lane] = data[i * row_ + j * column_ + offset_[lane]];
            out(i, j) = value;
          }
    }
  }

  void write(Grid<T> in, int64_t first, int64_t rows) const {
    T* data = data_ + first * row_;
    switch (access_) {
      case Access::whole:
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns_; ++j)
            __builtin_memcpy(data + i * row_ + j * column_ + offset_[0], &in(i, j), sizeof(V));
        break;
      case Access::runs:
        for (int k = 0; k < runs_; ++k) write_run(in, data, run_[k], rows);
        break;
      case Access::tiles:
        if (rows * columns_ >= width<T>) {
          write_tiles(in, data, rows);
          break;
        }
        [[fallthrough]];
      case Access::numbers:
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns_; ++j)
            for (int lane = 0; lane < count_; ++lane) data[i * row_ + j * column_ + offset_[lane]] = in(i, j)[lane];
    }
  }

  // One row, and only the lanes whose flag is set; the flags are ones and zeros.
  void write_flagged(Grid<T> in, int64_t row, V flags) const {
    for (int64_t j = 0; j < columns_; ++j)
      for (int lane = 0; lane < count_; ++lane)
        if (flags[lane] > 0) data_[row * row_ + j * column_ + offset_[lane]] = in(0, j)[lane];
  }

 private:
  enum class Access { whole, runs, tiles, numbers };

  // Lanes first, first + 1, ... whose matrices lie `step` numbers apart: 1, or 0 where they share one.
  struct Run {
    int first, count;
    int64_t step;
  };

  void find_runs() {
    run_[0] = {0, 1, 1}, runs_ = 1;
    for (int lane = 1; lane < count_; ++lane) {
      const int64_t step = offset_[lane] - offset_[lane - 1];
      Run& last = run_[runs_ - 1];
      if ((step == 0 || step == 1) && (last.count == 1 || last.step == step)) last.step = step, ++last.count;
      else run_[runs_++] = {lane, 1, 1};
    }
  }

  // Calls copy(piece, second) with a size of pieces that is known at compile time: a run is copied as one piece, or as
  // two of the same size that overlap, the second from lane `second` of the run on.
  template <class Copy>
  static void in_pieces(int count, Copy copy) {
    if (count == 8) copy(Piece<8>(), 0);
    else if (count > 8) copy(Piece<8>(), count - 8);
    else if (count == 4) copy(Piece<4>(), 0);
    else if (count > 4) copy(Piece<4>(), count - 4);
    else if (count == 2) copy(Piece<2>(), 0);
    else if (count > 2) copy(Piece<2>(), count - 2);
    else copy(Piece<1>(), 0);
  }

  template <int numbers>
  struct Piece {
    static constexpr size_t bytes = (numbers < width<T> ? numbers : width<T>) * sizeof(T);
  };

  void read_run(Grid<T> out, const T* data, Run run, int64_t rows) const {
    data += offset_[run.first];
    in_pieces(run.count, [&](auto piece, int second) {
      constexpr size_t bytes = decltype(piece)::bytes;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns_; ++j) {
          const T* from = data + i * row_ + j * column_;
          T* to = reinterpret_cast<T*>(&out(i, j)) + run.first;
          if (run.step == 0) {
            const V same = *from - V{};
            __builtin_memcpy(to, &same, bytes);
            if (second > 0) __builtin_memcpy(to + second, &same, bytes);
          } else {
            __builtin_memcpy(to, from, bytes);
            if (second > 0) __builtin_memcpy(to + second, from + second, bytes);
          }
        }
    });
  }

  void write_run(Grid<T> in, T* data, Run run, int64_t rows) const {
    data += offset_[run.first];
    in_pieces(run.count, [&](auto piece, int second) {
      constexpr size_t bytes = decltype(piece)::bytes;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns_; ++j) {
          const T* from = reinterpret_cast<const T*>(&in(i, j)) + run.first;
          T* to = data + i * row_ + j * column_;
          __builtin_memcpy(to, from, bytes);
          if (second > 0) __builtin_memcpy(to + second, from + second, bytes);
        }
    });
  }

  // The last tile overlaps the one before where the numbers of a lane are no multiple of the width.
  template <class Tile>
  void over_tiles(int64_t rows, Tile tile) const {
    const int64_t last = rows * columns_ - width<T>;
    for (int64_t first = 0; first < last; first += width<T>) tile(first);
    tile(last);
  }

  void read_tiles(Grid<T> out, const T* data, int64_t rows) const {
    over_tiles(rows, [&](int64_t first) {
      V tile[width<T>];
#pragma GCC unroll 16
      for (int lane = 0; lane < width<T>; ++lane)
        __builtin_memcpy(&tile[lane], data + offset_[lane < count_ ? lane : 0] + first, sizeof(V));
      transpose<T>(tile);
      int64_t i = first / columns_, j = first % columns_;
#pragma GCC unroll 16
      for (int k = 0; k < width<T>; ++k) {
        out(i, j) = tile[k];
        if (++j == columns_) j = 0, ++i;
      }
    });
  }

  void write_tiles(Grid<T> in, T* data, int64_t rows) const {
    over_tiles(rows, [&](int64_t first) {
      V tile[width<T>];
      int64_t i = first / columns_, j = first % columns_;
#pragma GCC unroll 16
      for (int k = 0; k < width<T>; ++k) {
        tile[k] = in(i, j);
        if (++j == columns_) j = 0, ++i;
      }
      transpose<T>(tile);
#pragma GCC unroll 16
      for (int lane = 0; lane < width<T>; ++lane)
        if (lane < count_) __builtin_memcpy(data + offset_[lane] + first, &tile[lane], sizeof(V));
    });
  }

  T* data_;
  int64_t row_, column_, columns_;
  int64_t offset_[width<T>];  // where each lane's matrix begins
  Run run_[width<T>];
  int count_, runs_ = 0;
  Access access_ = Access::numbers;
};

}  // namespace schurfire::SCHURFIRE_INSTRUCTIONS

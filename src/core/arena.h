// Bump allocation with marks: take() allocates, rewind() frees everything taken since the mark.
// A planning arena hands out addresses without memory behind them: run a pass on it with Kernels::none(), and peak()
// is the memory the real pass will need.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace qkv {

class Arena {
 public:
  enum class Mode { real, plan };
  struct Mark {
    size_t block = 0;
    int64_t used = 0, below = 0;
  };

  // `reserve` bytes are allocated at once. The arena grows if they are not enough, by at least a quarter of what it has;
  // with a plan's peak they are.
  explicit Arena(Device& device, int64_t reserve = 0, Mode mode = Mode::real);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  Tensor take(Format format, const Shape& shape);
  // So many bytes more in one block, as a plan's peak is: what is missing, and that memory taken in place of blocks in which
  // nothing lies.
  int64_t missing(int64_t bytes) const;
  void reserve(int64_t bytes);
  Mark mark() const { return {current_, used_, below_}; }
  void rewind(Mark mark);

  Device& device() const { return *device_; }
  bool planning() const { return mode_ == Mode::plan; }
  int64_t used() const { return below_ + used_; }  // bytes taken now
  int64_t peak() const { return peak_; }           // most bytes ever taken
  int64_t reserved() const;                        // bytes allocated from the device

 private:
  std::byte* take_bytes(int64_t bytes);
  void add_block(int64_t bytes);
  void drop_blocks(size_t from);

  Device* device_;
  Mode mode_;
  std::vector<Storage> blocks_;
  size_t current_ = 0;  // block we take from
  int64_t used_ = 0;    // bytes taken from it
  int64_t below_ = 0;   // bytes taken from the blocks before it
  int64_t peak_ = 0;
};

}  // namespace qkv

// Rotary and sinusoidal position tables, grown when a longer sequence comes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/context.h"
#include "nn/spec.h"
#include "ops/ops.h"

namespace qkv {

// One past the largest position of any row.
int64_t positions_used(const Rows& rows);

class Rope {
 public:
  explicit Rope(RopeSpec spec) : spec_(std::move(spec)) {}
  const RopeSpec& spec() const { return spec_; }
  Tensor forward(Context& cx, const Tensor& x, const Rows& rows) const { return rotate(cx, x, rows, spec_.first); }
  // The same for an x of the rotary columns alone.
  Tensor forward_rotary_only(Context& cx, const Tensor& x, const Rows& rows) const { return rotate(cx, x, rows, 0); }
  // Of queries, which are returned, and of keys, which go to the cache with their values.
  Tensor forward_to_cache(Context& cx, const ops::CacheHeads& heads, const Rows& rows) const;

 private:
  struct Turn {
    Tensor positions;
    ops::RotaryOptions options;
  };
  Turn turn(Context& cx, const Rows& rows, int64_t first) const;
  Tensor rotate(Context& cx, const Tensor& x, const Rows& rows, int64_t first) const;
  // Positions in the table. Longrope has other angles for long sequences: `beyond` more rows, below the first.
  struct Lengths {
    int64_t first = 0, beyond = 0;
    int64_t rows() const { return first + beyond; }
  };
  bool is_long(const Rows& rows, size_t segment) const;
  Lengths needed(const Rows& rows) const;
  void make_tables(Context& cx, Lengths lengths) const;
  Tensor table_rows(Context& cx, const Rows& rows, Lengths lengths) const;

  RopeSpec spec_;
  mutable Storage cos_, sin_;
  mutable Lengths made_;
};

// One table for all layers with the same spec.
class Ropes {
 public:
  std::shared_ptr<const Rope> get(const RopeSpec& spec);

 private:
  std::vector<std::shared_ptr<const Rope>> all_;
};

class Sinusoids {
 public:
  // Position p is row p + offset of the table.
  Sinusoids(int64_t width, ops::Sinusoid order, int64_t offset) : width_(width), order_(order), offset_(offset) {}
  // Of every row, in exact; those of `zero` have zeros.
  ops::Lookup lookup(Context& cx, const Rows& rows, std::span<const size_t> zero) const;

 private:
  int64_t width_;
  ops::Sinusoid order_;
  int64_t offset_;
  mutable int64_t length_ = 0;  // grown to the longest sequence so far
  mutable Storage table_;       // a row of zeros, then the positions
};

}  // namespace qkv

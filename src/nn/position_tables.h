// Tables a position looks up: rotary angles and sinusoids. Made on the device when a longer sequence first comes.
#pragma once

#include <memory>
#include <vector>

#include "core/context.h"
#include "ops/positions.h"

namespace qkv {

// One past the last position any row of the pass stands at.
int64_t positions_used(const Rows& rows);

struct RopeSpec {
  double base = 10000;
  int64_t width = 0;         // columns that turn,
  int64_t first = 0;         // from this one on
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + width / 2)
  ops::RopeScaling scaling;
  bool operator==(const RopeSpec&) const = default;
};

class Rope {
 public:
  explicit Rope(RopeSpec spec) : spec_(std::move(spec)) {}
  const RopeSpec& spec() const { return spec_; }
  Tensor forward(Context& cx, const Tensor& x, const Rows& rows) const { return turn(cx, x, rows, spec_.first); }
  // The same turn for x that is only the turning columns.
  Tensor forward_bare(Context& cx, const Tensor& x, const Rows& rows) const { return turn(cx, x, rows, 0); }

 private:
  Tensor turn(Context& cx, const Tensor& x, const Rows& rows, int64_t first) const;
  // The angles of so many positions; where long texts turn by others (longrope), theirs stand below.
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

// Layers that turn alike share one table.
class Ropes {
 public:
  std::shared_ptr<const Rope> get(const RopeSpec& spec);

 private:
  std::vector<std::shared_ptr<const Rope>> all_;
};

class Sinusoids {
 public:
  Sinusoids(int64_t width, ops::Sinusoid order) : width_(width), order_(order) {}
  Tensor rows(Context& cx, const Rows& rows) const;  // [N, C] in exact

 private:
  int64_t width_;
  ops::Sinusoid order_;
  mutable std::vector<float> table_;  // of as many positions as were needed so far
};

}  // namespace qkv

#include "nn/position_tables.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/ops.h"

namespace qkv {

int64_t positions_used(const Rows& rows) {
  int64_t used = 1;
  for (const Segment& s : rows.list) used = std::max<int64_t>(used, int64_t{s.position} + s.rows);
  return used;
}

namespace {

// A few tables serve all lengths: powers of two, but never across the point where longrope changes its factors.
int64_t table_length(int64_t used, const ops::RopeScaling& scaling) {
  constexpr int64_t kShortest = 256;
  const auto length = std::max(kShortest, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(used))));
  if (scaling.kind != ops::RopeScaling::Kind::longrope) return length;
  const auto original = static_cast<int64_t>(scaling.original_context);
  return used <= original ? std::min(length, original) : std::max(length, original + 1);
}

Storage on_device(Context& cx, const std::vector<float>& host) {
  const DType exact = cx.precision.exact;
  const auto count = static_cast<int64_t>(host.size());
  Storage storage(*cx.exec.device, exact, count);
  if (exact == DType::f32) {
    storage.device().upload(storage.data(), host.data(), count * size_of(DType::f32));
  } else {
    const std::vector<double> wide(host.begin(), host.end());
    storage.device().upload(storage.data(), wide.data(), count * size_of(DType::f64));
  }
  return storage;
}

}  // namespace

Tensor Rope::turn(Context& cx, const Tensor& x, const Rows& rows, int64_t first) const {
  const int64_t length = table_length(positions_used(rows), spec_.scaling), pairs = spec_.width / 2;
  ops::RotaryOptions options{.first = first, .interleaved = spec_.interleaved};
  if (cx.arena.planning()) {
    options.cos = options.sin = Tensor(*cx.exec.device, nullptr, cx.precision.exact, {length, pairs});
  } else {
    const bool another_regime = spec_.scaling.kind == ops::RopeScaling::Kind::longrope && length != made_for_;
    if (made_for_ < length || another_regime || cos_.format() != Format(cx.precision.exact)) {
      const ops::RopeTable table = ops::rope_table(spec_.base, spec_.width, length, spec_.scaling);
      cos_ = on_device(cx, table.cos);
      sin_ = on_device(cx, table.sin);
      made_for_ = length;
    }
    options.cos = Tensor(cos_, {made_for_, pairs});
    options.sin = Tensor(sin_, {made_for_, pairs});
  }
  return ops::rotary(cx, x, rows.positions, options);
}

std::shared_ptr<const Rope> Ropes::get(const RopeSpec& spec) {
  for (const auto& rope : all_) {
    if (rope->spec() == spec) return rope;
  }
  return all_.emplace_back(std::make_shared<const Rope>(spec));
}

Tensor Sinusoids::rows(Context& cx, const Rows& rows) const {
  const std::vector<float> table = ops::sinusoidal_positions(positions_used(rows), width_, order_);
  std::vector<float> wanted(static_cast<size_t>(rows.rows * width_), 0.0F);
  for (const Segment& s : rows.list) {
    std::copy_n(table.begin() + s.position * width_, s.rows * width_, wanted.begin() + s.first_row * width_);
  }
  return cx.upload(wanted, {rows.rows, width_});
}

}  // namespace qkv

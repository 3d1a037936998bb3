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

// Powers of two, so that a table is seldom made anew.
int64_t table_length(int64_t used) {
  constexpr int64_t kShortest = 256;
  return std::max(kShortest, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(used))));
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

bool Rope::is_long(const Rows& rows, size_t segment) const {
  if (spec_.scaling.kind != ops::RopeScaling::Kind::longrope) return false;
  const Segment& s = rows.list[segment];
  const int64_t reach = rows.reach.empty() ? int64_t{s.position} + s.rows : rows.reach[segment];
  return static_cast<double>(reach) > spec_.scaling.original_context;
}

Rope::Lengths Rope::needed(const Rows& rows) const {
  const int64_t length = table_length(positions_used(rows));
  if (spec_.scaling.kind != ops::RopeScaling::Kind::longrope) return {.first = length};
  const auto original = static_cast<int64_t>(spec_.scaling.original_context);
  Lengths lengths{.first = std::min(length, original)};
  for (size_t n = 0; n < rows.list.size(); ++n) {
    if (is_long(rows, n)) lengths.beyond = std::max(length, original + 1);
  }
  return lengths;
}

void Rope::make_tables(Context& cx, Lengths lengths) const {
  ops::RopeTable table = ops::rope_table(spec_.base, spec_.width, lengths.first, spec_.scaling);
  if (lengths.beyond > 0) {
    const ops::RopeTable beyond = ops::rope_table(spec_.base, spec_.width, lengths.beyond, spec_.scaling);
    table.cos.insert(table.cos.end(), beyond.cos.begin(), beyond.cos.end());
    table.sin.insert(table.sin.end(), beyond.sin.begin(), beyond.sin.end());
  }
  cos_ = on_device(cx, table.cos);
  sin_ = on_device(cx, table.sin);
  made_ = lengths;
}

// The table row of each row of x.
Tensor Rope::table_rows(Context& cx, const Rows& rows, Lengths lengths) const {
  if (lengths.beyond == 0) return rows.positions;
  std::vector<int32_t> at(static_cast<size_t>(rows.rows), 0);
  for (size_t n = 0; n < rows.list.size(); ++n) {
    const Segment& s = rows.list[n];
    const int64_t first = s.position + (is_long(rows, n) ? lengths.first : 0);
    for (int32_t r = 0; r < s.rows; ++r) at[static_cast<size_t>(s.first_row + r)] = static_cast<int32_t>(first + r);
  }
  return cx.upload(at);
}

Rope::Turn Rope::turn(Context& cx, const Rows& rows, int64_t first) const {
  const int64_t pairs = spec_.width / 2;
  Lengths lengths = needed(rows);
  ops::RotaryOptions options{.first = first, .interleaved = spec_.interleaved};
  if (cx.arena.planning()) {
    options.cos = options.sin = Tensor(*cx.exec.device, nullptr, cx.precision.exact, {lengths.rows(), pairs});
  } else {
    if (made_.first < lengths.first || made_.beyond < lengths.beyond || cos_.format() != Format(cx.precision.exact)) {
      make_tables(cx, {std::max(lengths.first, made_.first), std::max(lengths.beyond, made_.beyond)});
    }
    lengths = made_;
    options.cos = Tensor(cos_, {made_.rows(), pairs});
    options.sin = Tensor(sin_, {made_.rows(), pairs});
  }
  return {table_rows(cx, rows, lengths), options};
}

Tensor Rope::rotate(Context& cx, const Tensor& x, const Rows& rows, int64_t first) const {
  const Turn by = turn(cx, rows, first);
  return ops::rotary(cx, x, by.positions, by.options);
}

Tensor Rope::forward_to_cache(Context& cx, const ops::CacheHeads& heads, const Rows& rows) const {
  const Turn by = turn(cx, rows, spec_.first);
  return ops::cache_heads(cx, heads, by.positions, by.options);
}

std::shared_ptr<const Rope> Ropes::get(const RopeSpec& spec) {
  for (const auto& rope : all_) {
    if (rope->spec() == spec) return rope;
  }
  return all_.emplace_back(std::make_shared<const Rope>(spec));
}

ops::Lookup Sinusoids::lookup(Context& cx, const Rows& rows, std::span<const size_t> zero) const {
  const int64_t used = positions_used(rows) + offset_;
  // Row 0 of the table is zeros: padding, and rows of no sequence.
  std::vector<int32_t> at(static_cast<size_t>(rows.rows), 0);
  for (const Segment& s : rows.list) {
    for (int32_t r = 0; r < s.rows; ++r) {
      at[static_cast<size_t>(s.first_row + r)] = static_cast<int32_t>(1 + offset_ + s.position + r);
    }
  }
  for (const size_t r : zero) at[r] = 0;
  const Tensor ids = cx.upload(at);
  const Format exact(cx.precision.exact);
  if (cx.arena.planning()) return {.ids = ids, .numbers = Tensor(*cx.exec.device, nullptr, exact, {1 + used, width_})};
  if (length_ < used || table_.format() != exact) {
    length_ = std::max(length_, table_length(used));
    std::vector<float> numbers(static_cast<size_t>(width_), 0.0F);
    const std::vector<float> made = ops::sinusoidal_positions(length_, width_, order_);
    numbers.insert(numbers.end(), made.begin(), made.end());
    table_ = on_device(cx, numbers);
  }
  return {.ids = ids, .numbers = Tensor(table_, {1 + length_, width_})};
}

}  // namespace qkv

#include "core/rows.h"

#include <algorithm>

#include "base/error.h"
#include "core/context.h"

namespace qkv {
namespace {

constexpr int64_t kMostRows = INT32_MAX;  // rows and keys are counted in i32 on the device

// Sequence n: rows from `at` on that attend to each other.
Segment own_keys(size_t n, int64_t at, int32_t rows) {
  QKV_CHECK(rows >= 0, "rows: sequence ", n, " has ", rows, " tokens", Hint("a length is 0 or more"));
  QKV_CHECK(at + rows <= kMostRows, "rows: ", at + rows, " rows in one pass but at most ", kMostRows, " fit",
            Hint("use a smaller batch"));
  const auto first = static_cast<int32_t>(at);
  return {.request = static_cast<int32_t>(n), .first_row = first, .rows = rows, .first_key = first, .keys = rows};
}

}  // namespace

Rows Rows::make(Context& cx, std::vector<Segment> list, int64_t rows, int64_t keys) {
  QKV_CHECK(rows >= 0 && keys >= kPaged, "rows: ", rows, " rows and ", keys, " keys",
            Hint("count the rows of q and of k; keys in pages are Rows::kPaged"));
  Rows made;
  std::vector<int32_t> positions(static_cast<size_t>(rows), 0);
  std::vector<bool> taken(static_cast<size_t>(rows), false);
  int64_t next_row = 0, next_key = 0;
  made.packed = true;
  for (size_t n = 0; n < list.size(); ++n) {
    const Segment& s = list[n];
    QKV_CHECK(s.first_row >= 0 && s.rows >= 0 && int64_t{s.first_row} + s.rows <= rows, "rows: segment ", n,
              " covers rows [", s.first_row, ", ", int64_t{s.first_row} + s.rows, ") but there are ", rows,
              Hint("segments are parts of the rows of this pass"));
    QKV_CHECK(s.first_key >= 0 && s.keys >= 0 && (keys == kPaged || int64_t{s.first_key} + s.keys <= keys),
              "rows: segment ", n, " covers keys [", s.first_key, ", ", int64_t{s.first_key} + s.keys,
              ") but there are ", keys, Hint("segments see parts of the rows of k and v"));
    QKV_CHECK(int64_t{s.position} + s.rows <= kMostRows, "rows: segment ", n, " starts at position ", s.position,
              " and has ", s.rows, " rows", Hint("positions are counted in i32"));
    for (int32_t r = 0; r < s.rows; ++r) {
      const auto row = static_cast<size_t>(s.first_row + r);
      QKV_CHECK(!taken[row], "rows: row ", row, " belongs to two segments, the second is ", n,
                Hint("a row has one set of keys"));
      taken[row] = true;
      positions[row] = s.position + r;
    }
    made.longest_keys = std::max<int64_t>(made.longest_keys, s.keys);
    made.longest_rows = std::max<int64_t>(made.longest_rows, s.rows);
    made.packed = made.packed && s.first_row == next_row && s.first_key == next_key;
    next_row += s.rows;
    next_key += s.keys;
  }
  made.packed = made.packed && next_row == rows && next_key == keys;
  const auto n = static_cast<int64_t>(list.size());
  made.segments = cx.constant({n, 6}, DType::i32);
  if (!cx.arena.planning()) {
    made.segments.device().upload(made.segments.data(), list.data(), n * static_cast<int64_t>(sizeof(Segment)));
  }
  made.positions = cx.upload(positions);
  made.rows = rows;
  made.keys = keys;
  made.list = std::move(list);
  return made;
}

Rows Rows::batch(Context& cx, int64_t batch, int64_t length) {
  QKV_CHECK(batch >= 0 && length >= 0 && length <= kMostRows, "rows: a batch of ", batch, " x ", length,
            Hint("both must be 0 or more"));
  const std::vector<int32_t> lengths(static_cast<size_t>(batch), static_cast<int32_t>(length));
  return padded(cx, lengths, length);
}

Rows Rows::ragged(Context& cx, std::span<const int32_t> lengths) {
  std::vector<Segment> list;
  int64_t at = 0;
  for (const int32_t length : lengths) {
    list.push_back(own_keys(list.size(), at, length));
    at += length;
  }
  return make(cx, std::move(list), at, at);
}

Rows Rows::padded(Context& cx, std::span<const int32_t> lengths, int64_t length) {
  std::vector<Segment> list;
  for (const int32_t used : lengths) {
    QKV_CHECK(used <= length, "rows: a sequence of ", used, " tokens does not fit into ", length,
              Hint("pad to the longest sequence"));
    list.push_back(own_keys(list.size(), static_cast<int64_t>(list.size()) * length, used));
  }
  const auto rows = static_cast<int64_t>(lengths.size()) * length;
  return make(cx, std::move(list), rows, rows);
}

Rows Rows::cross(Context& cx, const Rows& queries, const Rows& keys) {
  QKV_CHECK(queries.list.size() == keys.list.size(), "rows: ", queries.list.size(), " query segments but ",
            keys.list.size(), " key segments", Hint("cross-attention pairs them one to one"));
  std::vector<Segment> list = queries.list;
  for (size_t n = 0; n < list.size(); ++n) {
    list[n].first_key = keys.list[n].first_key;  // what the encoder's own rows may see
    list[n].keys = keys.list[n].keys;
    list[n].position = 0;
  }
  return make(cx, std::move(list), queries.rows, keys.rows);
}

}  // namespace qkv

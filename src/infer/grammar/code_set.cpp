#include "infer/grammar/code_set.h"

#include <algorithm>
#include <array>

#include "text/unicode/characters.h"

namespace qkv::grammar {
namespace {

constexpr uint32_t kLast = 0x10ffff;

// The bytes of `range`, whose ends have UTF-8 of the same length, as ranges of bytes.
void split_utf8(CodeSet::Range range, int length, std::vector<ByteRange>& front,
                FunctionRef<void(const std::vector<ByteRange>&)> on_sequence) {
  const int shift = 6 * (length - 1);
  const uint32_t low = range.low >> shift, high = range.high >> shift;
  const auto byte = [&](uint32_t bits) {
    constexpr std::array<uint32_t, 5> kLead{0, 0, 0xc0, 0xe0, 0xf0};
    const bool leads = front.empty();
    return static_cast<uint8_t>(leads && length > 1 ? kLead[static_cast<size_t>(length)] | bits
                                                    : (leads ? bits : 0x80 | (bits & 63)));
  };
  if (length == 1) {
    front.push_back({byte(low), byte(high)});
    on_sequence(front);
    front.pop_back();
    return;
  }
  const uint32_t rest = (1U << shift) - 1;
  // The first and the last lead byte may have only a part of their characters; those between have all.
  const auto one = [&](uint32_t from, uint32_t to, CodeSet::Range inside) {
    if (from > to) return;
    front.push_back({byte(from), byte(to)});
    split_utf8(inside, length - 1, front, on_sequence);
    front.pop_back();
  };
  const uint32_t first_low = range.low & rest, last_high = range.high & rest;
  if (low == high) return one(low, low, {first_low, last_high});
  uint32_t from = low, to = high;
  if (first_low != 0) one(low, low, {first_low, rest}), ++from;
  if (last_high != rest) --to;
  one(from, to, {0, rest});
  if (last_high != rest) one(high, high, {0, last_high});
}

CodeSet where(FunctionRef<bool(const Char&)> wanted) {
  CodeSet set;
  for (uint32_t code = 0; code <= kLast; ++code) {
    if (code == 0xd800) code = 0xe000;
    if (wanted({code, 1, CharKinds::table().of(code)})) set.add(CodeSet::Range{code, code});
  }
  return set;
}

}  // namespace

CodeSet::CodeSet(std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) add(range);
}

void CodeSet::add(Range range) {
  if (!ranges_.empty() && range.low > ranges_.back().high) {  // the usual case
    if (range.low == ranges_.back().high + 1) {
      ranges_.back().high = range.high;
    } else {
      ranges_.push_back(range);
    }
    return;
  }
  std::vector<Range> all;
  for (const Range& r : ranges_) {
    if (r.high + 1 < range.low || range.high + 1 < r.low) {
      all.push_back(r);
    } else {
      range = {std::min(r.low, range.low), std::max(r.high, range.high)};
    }
  }
  const auto place = std::find_if(all.begin(), all.end(), [&](const Range& r) { return r.low > range.high; });
  all.insert(place, range);
  ranges_ = std::move(all);
}

void CodeSet::add(const CodeSet& other) {
  for (const Range& range : other.ranges_) add(range);
}

CodeSet CodeSet::complement() const {
  CodeSet all = *this, out;
  all.add({0xd800, 0xdfff});
  uint32_t next = 0;
  for (const Range& range : all.ranges_) {
    if (range.low > next) out.ranges_.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLast) out.ranges_.push_back({next, kLast});
  return out;
}

void utf8_ranges(const CodeSet& set, FunctionRef<void(const std::vector<ByteRange>&)> on_sequence) {
  constexpr std::array<CodeSet::Range, 5> kLengths{
      {{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, kLast}}};
  constexpr std::array<int, 5> kBytes{1, 2, 3, 3, 4};
  std::vector<ByteRange> front;
  for (const CodeSet::Range& range : set.ranges()) {
    for (size_t i = 0; i < kLengths.size(); ++i) {
      const uint32_t low = std::max(range.low, kLengths[i].low), high = std::min(range.high, kLengths[i].high);
      if (low <= high) split_utf8({low, high}, kBytes[i], front, on_sequence);
    }
  }
}

const ClassSets& digit_class() {
  static const ClassSets sets{{{'0', '9'}}, where([](const Char& c) { return is_number(c); })};
  return sets;
}

const ClassSets& word_class() {
  static const ClassSets sets{{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                              where([](const Char& c) { return is_word(c) || is_number(c); })};
  return sets;
}

const ClassSets& space_class() {
  static const ClassSets sets = [] {
    CodeSet wide = where([](const Char& c) { return is_space(c); });
    wide.add({0x1c, 0x1f});      // Python
    wide.add({0x85, 0x85});      // Python
    wide.add({0xfeff, 0xfeff});  // ECMA
    return ClassSets{{{'\t', '\r'}, {' ', ' '}}, wide};
  }();
  return sets;
}

}  // namespace qkv::grammar

#include "text/tokenizer/pipeline/post_processor.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/pipeline/growth_limit.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

template <class Value>
void cut(std::vector<Value>& values, size_t length, Side side) {
  if (values.size() <= length) return;
  if (side == Side::right) {
    values.resize(length);
  } else {
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(length));
  }
}

void cut_all(Encoding& text, size_t length, Side side) {
  cut(text.ids, length, side);
  cut(text.type_ids, length, side);
  cut(text.tokens, length, side);
  cut(text.offsets, length, side);
  cut(text.attention, length, side);
}

void truncate(const Truncation& rule, size_t added, Encoding& first, Encoding* second) {
  const size_t room = rule.max_length > added ? rule.max_length - added : 0;
  if (rule.max_length == 0) return cut_all(first, 0, rule.direction);
  const size_t other = second ? second->ids.size() : 0, total = first.ids.size() + other;
  if (total <= room) return;
  const size_t excess = total - room;
  if (second && rule.strategy == Truncation::Strategy::longest_first) {
    // The longer one is cut until both are equal, then both are.
    const size_t shorter = std::min(first.ids.size(), other);
    const bool first_is_shorter = first.ids.size() <= other;
    size_t small = shorter, large = room > shorter ? room - shorter : 0;
    if (large < small) {
      small = room / 2;
      large = room - small;
    }
    cut_all(first, first_is_shorter ? small : large, rule.direction);
    cut_all(*second, first_is_shorter ? large : small, rule.direction);
    return;
  }
  const bool cut_second = second && rule.strategy == Truncation::Strategy::only_second;
  Encoding& target = cut_second ? *second : first;
  QKV_CHECK(target.ids.size() > excess || !second, "cannot cut ", excess, " tokens off a text of ", target.ids.size(),
            " to reach ", rule.max_length, Hint("the other text is too long for this truncation strategy"));
  cut_all(target, target.ids.size() - std::min(excess, target.ids.size()), rule.direction);
}

bool is_space_letter(Char c) {
  return is_space(c) || c.code == 0x120;
}  // Ġ, the letter of the space in GPT-2's byte alphabet

void trim(const TrimOffsets& rule, Encoding& text) {
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    const std::string_view token = text.tokens[i];
    Offset& offset = text.offsets[i];
    size_t leading = 0, trailing = 0;
    bool leads = true;
    for (size_t at = 0; at < token.size();) {
      const Char c = char_at(token, at);
      const bool space = is_space_letter(c);
      leads = leads && space;
      leading += leads ? 1 : 0;
      trailing = space ? trailing + 1 : 0;
      at += c.bytes;
    }
    if (leading > 0) {
      const bool is_first = i == 0 || offset.begin == 0;
      if (is_first && rule.add_prefix_space) leading = 0;
      offset.begin = std::min(offset.begin + leading, offset.end);
    }
    if (trailing > 0 && offset.end >= trailing) offset.end = std::max(offset.end - trailing, offset.begin);
  }
}

template <class Value>
void append(std::vector<Value>& to, std::vector<Value>& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

void add_text(Encoding& out, Encoding& text, int32_t type_id, bool with_offsets) {
  const size_t count = text.ids.size();
  append(out.ids, text.ids);
  if (!with_offsets) return;
  append(out.tokens, text.tokens);
  append(out.offsets, text.offsets);
  out.type_ids.resize(out.type_ids.size() + count, type_id);
  out.attention.resize(out.attention.size() + count, 1);
}

void add_specials(Encoding& out, const TemplatePiece& piece, bool with_offsets) {
  out.ids.insert(out.ids.end(), piece.ids.begin(), piece.ids.end());
  if (!with_offsets) return;
  out.tokens.insert(out.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  out.offsets.resize(out.ids.size());
  out.type_ids.resize(out.ids.size(), piece.type_id);
  out.attention.resize(out.ids.size(), 1);
}

template <class Value>
void pad_one(std::vector<Value>& values, size_t count, Side side, const Value& value) {
  values.insert(side == Side::right ? values.end() : values.begin(), count, value);
}

void pad(const Padding& rule, Encoding& text, bool with_offsets) {
  size_t length = rule.fixed.value_or(text.ids.size());
  if (rule.multiple_of > 1) length = (length + rule.multiple_of - 1) / rule.multiple_of * rule.multiple_of;
  if (length <= text.ids.size()) return;
  const size_t count = length - text.ids.size();
  pad_one(text.ids, count, rule.direction, rule.id);
  if (!with_offsets) return;
  pad_one(text.tokens, count, rule.direction, rule.token);
  pad_one(text.offsets, count, rule.direction, Offset{});
  pad_one(text.type_ids, count, rule.direction, rule.type_id);
  pad_one(text.attention, count, rule.direction, uint8_t{0});
}

}  // namespace

Encoding PostProcessor::apply(Input input) const {
  const std::vector<TemplatePiece>& pieces = input.second ? pair : single;
  if (truncation && !input.keep_length) {
    size_t added = 0;
    for (const TemplatePiece& piece : pieces) added += input.specials ? piece.ids.size() : 0;
    truncate(*truncation, added, *input.first, input.second);
  }
  if (input.with_offsets) {
    for (const TrimOffsets& rule : trims) {
      trim(rule, *input.first);
      if (input.second) trim(rule, *input.second);
    }
  }
  Encoding out;
  GrowthLimit limit(input.what, "tokens");
  limit.add_input(input.first->ids.size() + (input.second ? input.second->ids.size() : 0));
  constexpr const char* kStep = "the post-processor";
  if (pieces.empty()) {
    add_text(out, *input.first, 0, input.with_offsets);
    if (input.second) add_text(out, *input.second, 1, input.with_offsets);
  }
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::special) {
      if (input.specials) limit.spend(piece.ids.size(), kStep);
      if (input.specials) add_specials(out, piece, input.with_offsets);
    } else {
      Encoding& text = piece.kind == TemplatePiece::Kind::first_text ? *input.first : *input.second;
      limit.spend(text.ids.size(), kStep);
      add_text(out, text, piece.type_id, input.with_offsets);
    }
  }
  out.replaced_bytes = input.first->replaced_bytes + (input.second ? input.second->replaced_bytes : 0);
  if (padding && !input.keep_length) pad(*padding, out, input.with_offsets);
  return out;
}

}  // namespace qkv

// Kinds of tokens by what they spell: which of them experts divide among themselves.
#pragma once

#include <array>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

enum class WordKind : int32_t { word, part, number, sign, chinese, space, special };
inline constexpr std::array kWordKinds = {"word", "word part", "number", "sign", "Chinese", "space", "special"};

WordKind word_kind_of(const Tokenizer& tokenizer, int32_t id);
// Of every token of a vocabulary, as RoutingOptions::class_of wants them.
std::vector<int32_t> word_kinds(const Tokenizer& tokenizer, int64_t vocabulary);

}  // namespace qkv

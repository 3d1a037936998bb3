#include "inspect/look/worth_telling.h"

#include <algorithm>

#include "text/unicode/characters.h"

namespace qkv {
namespace {

constexpr int64_t kFurtherBack = 2;
constexpr double kNearlyBest = 0.5;

bool shows_word(const ShownToken& token) {
  for (size_t at = 0; at < token.text.size();) {
    const Char c = char_at(token.text, at);
    if (is_word(c)) return !token.text.starts_with('<');  // special tokens are no words
    at += c.bytes;
  }
  return false;
}

}  // namespace

TokenWorth token_worth_telling(const Looked& seen, const Ladder& ladder, std::span<const ShownToken> tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  if (!seen.whole || rows < 2) return {.token = rows - 1};
  std::vector<char> word;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const bool whole = t + 1 == tokens.size() || !tokens[t + 1].continues;  // not a part of a character
    word.push_back(whole && shows_word(tokens[t]) ? 1 : 0);
  }
  // fetched[r]: the largest weight of any head from row r to a word further back.
  std::vector<float> fetched(static_cast<size_t>(rows), 0.0F);
  for (const SeenAttention& a : seen.attentions) {
    if (a.queries != rows || a.keys != rows) continue;
    for (int64_t r = kFurtherBack; r < rows; ++r) {
      for (int64_t h = 0; h < a.heads; ++h) {
        for (const TopKey& top : a.top_of(r, h)) {
          if (top.key < 1 || top.key + kFurtherBack > r || word[static_cast<size_t>(top.key)] == 0) continue;
          fetched[static_cast<size_t>(r)] = std::max(fetched[static_cast<size_t>(r)], top.weight);
        }
      }
    }
  }
  TokenWorth best{.token = rows - 1}, last = best;
  const auto levels = static_cast<double>(ladder.levels.size());
  for (int64_t r = 1; r < rows; ++r) {
    const auto row = static_cast<size_t>(r);
    if (word[row] == 0) continue;
    const double worked_out = static_cast<double>(ladder.settled[row]) / levels;
    const double sure = ladder.at(ladder.levels.size() - 1, r).guesses.front().p;
    const double worth = worked_out * sure * static_cast<double>(fetched[row]);
    if (worth > best.worth) best = {.token = r, .worth = worth};
    if (r == rows - 1) last.worth = worth;
  }
  return last.worth >= kNearlyBest * best.worth ? last : best;
}

}  // namespace qkv

// Facts about the tokens that heads attend to: punctuation, earlier occurrences, rare tokens.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "inspect/texts/reading.h"
#include "inspect/texts/token_kinds.h"

namespace qkv {

// Text of the decoder (or of the only stack), and of the encoder.
enum class TextSide : uint8_t { own, source };

class RoleTexts {
 public:
  static constexpr size_t kFrequent = 500;  // as in Voita et al. 2019

  RoleTexts(std::span<const TokenText> texts, const ModelSpec& spec, const Tokenizer* tokenizer);

  const std::vector<int32_t>& ids(TextSide side, int32_t text) const {
    const TokenText& seen = texts_[static_cast<size_t>(text)];
    return side == TextSide::own ? seen.ids : seen.source;
  }
  void know_kinds(const std::function<TokenKind(int32_t id)>& kind_of_id);  // of the tokens of the texts
  bool has_kinds() const { return !kinds_.empty(); }
  TokenKind kind(TextSide side, int32_t text, int32_t position) const;
  bool ends(int32_t id) const { return ends_.contains(id); }  // an end or separator token

  using Counts = std::array<int32_t, kTokenKinds>;
  // Counts of kinds among the tokens before each position, one more entry than tokens. Cached until forget().
  const std::vector<Counts>& counts_before(TextSide side, int32_t text);
  void forget() {
    for (auto& of_side : counts_) of_side.assign(texts_.size(), {});
  }

  // Earlier positions of the same token.
  std::vector<int32_t> earlier_copies(TextSide side, int32_t text, int32_t position) const;

  // The two rarest tokens of a text and their first positions, if the rarest is not among the most frequent.
  struct Rare {
    std::array<int32_t, 2> ids, at;
  };
  std::optional<Rare> rare(TextSide side, int32_t text) const;
  bool knows_rare(TextSide side) const { return frequency_[static_cast<size_t>(side)].size() > kFrequent; }

  // Tokens to draw random repetitions from: neither the most frequent nor seen only once.
  std::vector<int32_t> ordinary_tokens() const;

 private:
  struct Frequency {
    int64_t count = 0;
    size_t rank = 0;  // 0: the most frequent
  };

  std::span<const TokenText> texts_;
  std::vector<TokenKind> kinds_;  // by id; empty: unknown
  std::set<int32_t> special_, ends_;
  std::array<std::map<int32_t, Frequency>, 2> frequency_;
  std::array<std::vector<int32_t>, 2> ranks_;               // by id
  std::array<std::vector<std::vector<Counts>>, 2> counts_;  // by text; empty: not counted yet
};

}  // namespace qkv

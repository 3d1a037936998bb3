#include "inspect/texts/role_texts.h"

#include <algorithm>
#include <limits>

namespace qkv {

RoleTexts::RoleTexts(std::span<const TokenText> texts, const ModelSpec& spec, const Tokenizer* tokenizer)
    : texts_(texts), ends_(spec.tokens.eos.begin(), spec.tokens.eos.end()) {
  special_ = ends_;
  forget();
  for (const auto& id : {spec.tokens.bos, spec.tokens.pad, spec.tokens.decoder_start}) {
    if (id) special_.insert(*id);
  }
  if (tokenizer != nullptr) {
    for (const auto& id : {tokenizer->named().eos, tokenizer->named().sep}) {
      if (id) ends_.insert(*id);
    }
  }
  for (const TextSide side : {TextSide::own, TextSide::source}) {
    auto& known = frequency_[static_cast<size_t>(side)];
    for (size_t t = 0; t < texts.size(); ++t) {
      for (const int32_t id : ids(side, static_cast<int32_t>(t))) ++known[id].count;
    }
    std::vector<Frequency*> order;
    for (auto& [id, one] : known) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->count > b->count; });
    for (size_t r = 0; r < order.size(); ++r) order[r]->rank = r;
    std::vector<int32_t>& ranks = ranks_[static_cast<size_t>(side)];
    if (!known.empty()) ranks.resize(static_cast<size_t>(known.rbegin()->first) + 1);
    for (const auto& [id, one] : known) ranks[static_cast<size_t>(id)] = static_cast<int32_t>(one.rank);
  }
  if (tokenizer != nullptr) {
    know_kinds([&](int32_t id) { return kind_of(*tokenizer, id); });
  }
}

void RoleTexts::know_kinds(const std::function<TokenKind(int32_t id)>& kind_of_id) {
  kinds_.assign(1, TokenKind::other);
  for (const auto& known : frequency_) {
    for (const auto& [id, one] : known) {
      const auto at = static_cast<size_t>(id);
      if (at >= kinds_.size()) kinds_.resize(at + 1, TokenKind::other);
      kinds_[at] = kind_of_id(id);
      if (kinds_[at] == TokenKind::special) special_.insert(id);
    }
  }
}

// The first token attracts attention sinks: it counts as the first key, not as a special token.
TokenKind RoleTexts::kind(TextSide side, int32_t text, int32_t position) const {
  const auto id = static_cast<size_t>(ids(side, text)[static_cast<size_t>(position)]);
  const TokenKind kind = id < kinds_.size() ? kinds_[id] : TokenKind::other;
  return position == 0 && kind == TokenKind::special ? TokenKind::other : kind;
}

const std::vector<RoleTexts::Counts>& RoleTexts::counts_before(TextSide side, int32_t text) {
  std::vector<Counts>& counts = counts_[static_cast<size_t>(side)][static_cast<size_t>(text)];
  if (!counts.empty()) return counts;
  const auto length = static_cast<int32_t>(ids(side, text).size());
  counts.reserve(static_cast<size_t>(length) + 1);
  Counts so_far{};
  counts.push_back(so_far);
  for (int32_t p = 0; p < length; ++p) {
    ++so_far[static_cast<size_t>(kind(side, text, p))];
    counts.push_back(so_far);
  }
  return counts;
}

std::vector<int32_t> RoleTexts::earlier_copies(TextSide side, int32_t text, int32_t position) const {
  const std::vector<int32_t>& all = ids(side, text);
  std::vector<int32_t> found;
  for (int32_t p = 0; p < position; ++p) {
    if (all[static_cast<size_t>(p)] == all[static_cast<size_t>(position)]) found.push_back(p);
  }
  return found;
}

std::optional<RoleTexts::Rare> RoleTexts::rare(TextSide side, int32_t text) const {
  if (!knows_rare(side)) return std::nullopt;
  constexpr int32_t kNone = -1;
  Rare found{{kNone, kNone}, {kNone, kNone}};
  constexpr auto kLeast = static_cast<int32_t>(kFrequent);
  std::array<int32_t, 2> ranks{0, 0};
  const std::vector<int32_t>& all = ids(side, text);
  const std::vector<int32_t>& rank_of = ranks_[static_cast<size_t>(side)];
  for (size_t p = 0; p < all.size(); ++p) {
    if (all[p] == found.ids[0] || all[p] == found.ids[1]) continue;
    const int32_t rank = rank_of[static_cast<size_t>(all[p])];
    size_t place = 2;
    while (place > 0 && (found.ids[place - 1] == kNone || rank > ranks[place - 1])) --place;
    if (place == 2 || special_.contains(all[p])) continue;
    if (place == 0) {
      found.ids[1] = found.ids[0];
      found.at[1] = found.at[0];
      ranks[1] = ranks[0];
    }
    found.ids[place] = all[p];
    found.at[place] = static_cast<int32_t>(p);
    ranks[place] = rank;
  }
  if (found.ids[1] == kNone || ranks[0] < kLeast) return std::nullopt;
  return found;
}

std::vector<int32_t> RoleTexts::ordinary_tokens() const {
  const auto& known = frequency_[static_cast<size_t>(TextSide::own)];
  std::vector<int32_t> all, ordinary;
  for (const auto& [id, one] : known) {
    if (special_.contains(id)) continue;
    all.push_back(id);
    if (one.rank >= known.size() / 20 && one.count > 1) ordinary.push_back(id);
  }
  constexpr size_t kEnough = 50;
  return ordinary.size() >= kEnough ? ordinary : all;
}

}  // namespace qkv

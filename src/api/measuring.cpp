#include "api/measuring.h"

#include <algorithm>
#include <numeric>

#include "api/inside.h"
#include "api/outer.h"
#include "api/texts.h"
#include "base/error.h"
#include "inspect/heads/head_roles.h"
#include "inspect/lens/lens.h"

namespace qkv::v1 {

Lens Model::lens() const {
  return lens(usual_data(impl().open()->spec()));
}

std::vector<HeadRoles> Model::roles() const {
  return roles(usual_data(impl().open()->spec()));
}

Lens Model::lens(const Data& data) const {
  const auto open = impl().looking();
  const std::vector<TokenText> texts = texts_of(*open, data);
  const Impl::Turn turn(impl());
  Reader reader(open->model(), open->engine(), {.precision = open->precision()});
  const LensReport found = read_lens(reader, texts);
  Lens out{.layers = {}, .settled_at = outer(found.settled_at)};
  for (const qkv::LensLayer& layer : found.layers) {
    out.layers.push_back({.name = layer.name,
                          .agrees = outer(layer.agrees),
                          .rank = outer(layer.rank),
                          .entropy = outer(layer.entropy),
                          .kl = outer(layer.kl),
                          .loss = outer(layer.loss),
                          .settled = outer(layer.settled)});
  }
  return out;
}

std::vector<HeadRoles> Model::roles(const Data& data) const {
  const auto open = impl().looking();
  const std::vector<TokenText> texts = texts_of(*open, data);
  check_enough(texts, data.name.empty() ? "data" : data.name);
  const Impl::Turn turn(impl());
  Reader reader(open->model(), open->engine(), {.precision = open->precision()});
  const qkv::Tokenizer* tokenizer = open->has_tokenizer() ? &open->tokenizer() : nullptr;
  const RoleScores scores = head_roles(reader, tokenizer, texts, {});
  std::vector<HeadRoles> out;
  for (const HeadScore& head : scores.heads) {
    HeadRoles& one =
        out.emplace_back(HeadRoles{.head = qkv::name_of(open->spec(), head.id), .roles = {}, .measures = {}});
    for (const qkv::Role& role : roles_of(head)) {
      one.roles.push_back({.name = role.rule->name, .score = outer(role.score), .coverage = outer(role.coverage)});
    }
    for (size_t m = 0; m < kMeasures; ++m) {
      if (head.values[m].n == 0) continue;
      one.measures.emplace_back(qkv::name_of(static_cast<Measure>(m)), outer(head.values[m]));
    }
  }
  return out;
}

void check_enough(std::span<const TokenText> texts, const std::string& where) {
  QKV_CHECK(std::ssize(texts) >= qkv::Estimate::kFewestTexts, where, " gives ", texts.size(),
            " texts; an interval needs ", qkv::Estimate::kFewestTexts, Hint("raise tokens, or cut shorter texts"));
}

const char* name_of(qkv::AttributedPart::Kind kind) {
  switch (kind) {
    case qkv::AttributedPart::Kind::embed:
      return "embed";
    case qkv::AttributedPart::Kind::head:
      return "head";
    case qkv::AttributedPart::Kind::feed:
      return "mlp";
    case qkv::AttributedPart::Kind::biases:
      return "biases";
  }
  return "?";
}

std::vector<int32_t> two_best(std::span<const float> logits) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto most = std::min<std::ptrdiff_t>(2, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + most, ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  ids.resize(static_cast<size_t>(most));
  return ids;
}

void check_token(const char* what, int32_t id, std::span<const float> logits) {
  QKV_CHECK(id >= 0 && id < std::ssize(logits), what, ": there is no token ", id, ", ids are from 0 to ",
            logits.size() - 1, Hint("a tokenizer's encode() gives those of a text"));
}

TokenPair compared_tokens(const Attributor& attributor, std::optional<int32_t> target, std::optional<int32_t> against) {
  const std::vector<float>& logits = attributor.logits();
  QKV_CHECK(logits.size() >= 2, "a vocabulary of ", logits.size(), Hint("a difference needs two"));
  if (target) check_token("target", *target, logits);
  if (against) check_token("against", *against, logits);
  const std::vector<int32_t> best = two_best(logits);
  const int32_t first = target.value_or(best[0]);
  return {.target = first, .against = against.value_or(best[best[0] == first ? 1 : 0])};
}

Attribution Model::attribute(const Text& text, const AttributeOptions& options) const {
  const auto open = impl().looking();
  const TokenText tokens = tokens_of(*open, text);
  QKV_CHECK(!tokens.ids.empty(), "the text has no tokens", Hint("give one of at least a word"));
  const int64_t row = options.token == -1 ? std::ssize(tokens.ids) - 1 : options.token;
  const Impl::Turn turn(impl());
  const Attributor attributor(open->model(), open->engine(), open->precision(), tokens, row);
  const auto [target, against] = compared_tokens(attributor, options.target, options.against);
  QKV_CHECK(target != against, "target and against are both token ", target, Hint("a token against itself is 0"));
  const qkv::Attribution found = attributor.of(target, against);
  Attribution out{.token = row,
                  .target = target,
                  .against = against,
                  .parts = {},
                  .sum = found.sum,
                  .difference = found.difference,
                  .linearised = attributor.linearised()};
  for (const qkv::AttributedPart& part : found.parts) {
    out.parts.push_back({.name = part.name, .kind = name_of(part.kind), .share = part.share});
  }
  return out;
}

}  // namespace qkv::v1

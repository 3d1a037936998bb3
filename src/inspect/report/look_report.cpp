#include "inspect/report/look_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "inspect/look/story.h"
#include "inspect/report/numbers.h"
#include "io/npz.h"
#include "text/tokenizer/files/base64.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

constexpr int64_t kMostMapCells = 40'000'000;  // of all heads: 512 tokens of a model with 144
constexpr size_t kShownNumbers = 8;

Json guesses_json(const LookedAt& at, size_t level, int64_t row) {
  Json list = Json::array();
  for (const Guess& guess : at.ladder.at(level, row).guesses) {
    list.push_back({{"text", at.guess_text(row, guess.id)}, {"p", brief(guess.p)}});
  }
  return list;
}

// One list a token of the text, so that its numbers are those of "tokens"; rows that were not kept are empty or null.
Json ladder_json(const LookedAt& at) {
  Json out;
  const auto rows = static_cast<int64_t>(at.tokens.size());
  const bool predicts = at.spec.kind != ModelSpec::Kind::encoder_only;
  Json layers = Json::array(), guesses = Json::array(), rank = Json::array(), kl = Json::array(),
       entropy = Json::array(), settled = Json::array(), next = Json::array(), losses = Json::array();
  for (size_t level = 0; level < at.ladder.levels.size(); ++level) {
    layers.push_back(at.level_name(level));
    Json of_level[4] = {Json::array(), Json::array(), Json::array(), Json::array()};
    for (int64_t r = 0; r < rows; ++r) {
      if (!at.ladder.rows.has(r)) {
        of_level[0].push_back(Json::array());
        for (int i = 1; i < 4; ++i) of_level[i].push_back(nullptr);
        continue;
      }
      const Rung& rung = at.ladder.at(level, r);
      of_level[0].push_back(guesses_json(at, level, r));
      of_level[1].push_back(rung.rank);
      of_level[2].push_back(brief(rung.kl));
      of_level[3].push_back(brief(rung.entropy));
    }
    guesses.push_back(std::move(of_level[0]));
    rank.push_back(std::move(of_level[1]));
    kl.push_back(std::move(of_level[2]));
    entropy.push_back(std::move(of_level[3]));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const bool kept = at.ladder.rows.has(r);
    settled.push_back(kept ? Json(at.ladder.settled[static_cast<size_t>(r - at.ladder.rows.first)]) : Json(nullptr));
    const double loss = kept ? at.ladder.losses[static_cast<size_t>(r - at.ladder.rows.first)] : NAN;
    losses.push_back(std::isnan(loss) ? Json(nullptr) : brief(loss));
    const bool known = predicts && r + 1 < rows;
    next.push_back(known ? Json(at.guess_text(r, at.seen.text.ids[static_cast<size_t>(r + 1)])) : Json(nullptr));
  }
  return {{"layers", layers},   {"guesses", guesses}, {"rank", rank}, {"kl", kl},
          {"entropy", entropy}, {"settled", settled}, {"next", next}, {"losses", losses}};
}

std::string map_of(const SeenAttention& a, int64_t head) {
  std::string bytes;
  for (int64_t i = 0; i < a.queries; ++i) {
    for (int64_t j = 0; j < a.keys; ++j) bytes += map_byte(static_cast<double>(a.weight(i, head, j)));
  }
  return encode_base64(bytes);
}

// A map of at most kThumbSide cells a side: the mean over a cell's rows of the sum over its keys, the first key left out.
constexpr int64_t kThumbSide = 64;

Json thumb_of(const SeenAttention& a, int64_t head) {
  const int64_t pooled = (std::max(a.queries, a.keys) + kThumbSide - 1) / kThumbSide;
  const int64_t rows = (a.queries + pooled - 1) / pooled, columns = (a.keys + pooled - 1) / pooled;
  std::vector<double> cells(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < a.queries; ++i) {
    const int64_t of_cell = std::min(pooled, a.queries - i / pooled * pooled);
    for (int64_t j = 1; j < a.keys; ++j) {
      cells[static_cast<size_t>(i / pooled * columns + j / pooled)] +=
          static_cast<double>(a.weight(i, head, j)) / static_cast<double>(of_cell);
    }
  }
  return thumb_json(cells, {.rows = rows, .columns = columns, .pooled = pooled});
}

// The heaviest keys of each row; rows that were not kept are empty.
Json top_of(const SeenAttention& a, int64_t head) {
  Json top = Json::array();
  for (int64_t r = 0; r < a.queries; ++r) {
    Json row = Json::array();
    if (a.rows.has(r)) {
      for (const TopKey& key : a.top_of(r, head)) {
        if (key.key >= 0) row.push_back({key.key, brief(static_cast<double>(key.weight))});
      }
    }
    top.push_back(std::move(row));
  }
  return top;
}

Json heads_json(const LookedAt& at, const LookPartsOptions& options) {
  int64_t cells = 0, longest = 0;
  for (const SeenAttention& a : at.seen.attentions) {
    cells += a.heads * a.queries * a.keys;
    longest = std::max({longest, a.queries, a.keys});
  }
  const bool maps = at.seen.whole && cells <= kMostMapCells && longest <= options.longest_map;
  const bool thumbs = at.seen.whole && longest > kThumbSide;
  Json list = Json::array();
  for (const SeenAttention& a : at.seen.attentions) {
    const bool across = a.place.stack == Stack::cross, reads = a.q_at.empty();
    for (int64_t h = 0; h < a.heads; ++h) {
      Json head{{"name", name_of(at.spec, HeadId{a.place.stack, a.place.layer, static_cast<int16_t>(h)})},
                {"stack", across                            ? "cross"
                          : a.place.stack == Stack::encoder ? "encoder"
                                                            : "decoder"},
                {"layer", a.place.layer},
                {"head", h},
                {"queries", reads ? "source" : "tokens"},
                {"keys", reads || across ? "source" : "tokens"},
                {"entropy", brief(a.entropy[static_cast<size_t>(h)])}};
      if (options.top) head["top"] = top_of(a, h);
      if (!a.first.empty()) {
        head["first"] = brief(a.first[static_cast<size_t>(h)]);
        head["previous"] = brief(a.previous[static_cast<size_t>(h)]);
        head["distance"] = brief(a.distance[static_cast<size_t>(h)]);
        head["highest"] = brief(a.highest[static_cast<size_t>(h)]);
      }
      if (maps) head["map"] = map_of(a, h);
      if (thumbs) head["thumb"] = thumb_of(a, h);
      list.push_back(std::move(head));
    }
  }
  return list;
}

Json head_story_json(const LookedAt& at, const HeadStory& head, const std::vector<ShownToken>& keys) {
  Json matches = Json::array();
  for (const Match& m : head.matches) {
    matches.push_back({{"key", m.key},
                       {"text", keys[static_cast<size_t>(m.key)].text},
                       {"qk", brief(m.qk)},
                       {"score", brief(m.score)},
                       {"share", brief(m.share)},
                       {"v_norm", brief(m.value_norm)}});
  }
  return {{"name", name_of(at.spec, head.head)},
          {"q", brief(std::span(head.q).first(std::min(kShownNumbers, head.q.size())))},
          {"q_norm", brief(norm_of(head.q))},
          {"width", head.q.size()},
          {"scale", brief(head.scale)},
          {"matches", std::move(matches)},
          {"others", brief(head.others)},
          {"nowhere", brief(head.nowhere)},
          {"z_norm", brief(head.z_norm)},
          {"out_norm", brief(head.out_norm)}};
}

// Which experts each token visits, of the layers that have any; null for rows that were not kept.
Json experts_json(const LookedAt& at) {
  Json list = Json::array();
  const auto rows = static_cast<int64_t>(at.tokens.size());
  for (size_t l = 0; l < at.seen.layers.size(); ++l) {
    const SeenLayer& layer = at.seen.layers[l];
    if (layer.experts.empty()) continue;
    const size_t each = layer.experts.size() / static_cast<size_t>(at.seen.rows.count);
    Json ids = Json::array(), weights = Json::array();
    for (int64_t r = 0; r < rows; ++r) {
      if (!at.seen.rows.has(r)) {
        ids.push_back(nullptr);
        weights.push_back(nullptr);
        continue;
      }
      const size_t from = static_cast<size_t>(r - at.seen.rows.first) * each;
      const auto of_row = std::span(layer.experts).subspan(from, each);
      ids.push_back(std::vector<int32_t>(of_row.begin(), of_row.end()));
      weights.push_back(brief(std::span(layer.expert_weights).subspan(from, each)));
    }
    list.push_back({{"layer", l}, {"ids", std::move(ids)}, {"weights", std::move(weights)}});
  }
  return list;
}

Json story_json(const LookedAt& at) {
  const int64_t token = at.seen.token;
  Json layers = Json::array();
  for (const LayerStory& layer : story_of(at.spec, at.seen)) {
    Json heads = Json::array();
    double brought = 0;
    for (const AttentionStory& a : layer.attentions) {
      const std::vector<ShownToken>& keys = at.keys_of(at.seen.at(a.place));
      for (const HeadStory& head : a.heads) heads.push_back(head_story_json(at, head, keys));
      if (a.place.stack != Stack::cross) brought = norm_of(a.out);
    }
    Json one{{"layer", layer.layer},
             {"norm_in", brief(norm_of(layer.seen->pre_at))},
             {"heads", std::move(heads)},
             {"attn_out_norm", brief(brought)},
             {"resid_mid_norm", brief(norm_of(layer.seen->mid_at))},
             {"resid_norm", brief(norm_of(layer.seen->post_at))},
             {"guess", guesses_json(at, static_cast<size_t>(layer.layer) + 1, token)}};
    if (!layer.seen->mlp_at.empty()) one["mlp_out_norm"] = brief(norm_of(layer.seen->mlp_at));
    if (layer.attentions.size() > 1) one["cross_out_norm"] = brief(norm_of(layer.attentions[1].out));
    layers.push_back(std::move(one));
  }
  return {{"token", token}, {"shown", at.tokens[static_cast<size_t>(token)].text}, {"layers", std::move(layers)}};
}

}  // namespace

std::vector<ShownToken> shown_ids(const Tokenizer* tokenizer, std::span<const int32_t> ids) {
  const bool known =
      tokenizer != nullptr && std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer->has(id); });
  if (known) return shown_tokens(*tokenizer, ids);
  std::vector<ShownToken> list;
  for (const int32_t id : ids) list.push_back({.id = id, .text = fmt::format("#{}", id)});
  return list;
}

LookedAt::LookedAt(const Tokenizer* words, const ModelSpec& model, Looked looked, Ladder guesses)
    : tokenizer(words),
      spec(model),
      seen(std::move(looked)),
      ladder(std::move(guesses)),
      tokens(shown_ids(words, seen.text.ids)),
      source(shown_ids(words, seen.text.source)) {}

const std::vector<ShownToken>& LookedAt::queries_of(const SeenAttention& a) const {
  return a.q_at.empty() ? source : tokens;
}

const std::vector<ShownToken>& LookedAt::keys_of(const SeenAttention& a) const {
  return a.place.stack == Stack::cross || a.q_at.empty() ? source : tokens;
}

std::string LookedAt::guess_text(int64_t row, int32_t id) const {
  const auto before = static_cast<size_t>(spec.kind == ModelSpec::Kind::encoder_only ? row : row + 1);
  if (tokenizer == nullptr) return fmt::format("#{}", id);
  return ShownGuess(*tokenizer, std::span(seen.text.ids).first(before)).text(id);
}

std::string LookedAt::level_name(size_t level) const {
  if (level == 0) return "embed";
  return level + 1 == ladder.levels.size() ? "out" : std::to_string(level - 1);
}

Json tokens_json(const std::vector<ShownToken>& tokens) {
  Json list = Json::array();
  for (const ShownToken& token : tokens) {
    Json one{{"id", token.id}, {"text", token.text}, {"continues", token.continues}};
    if (token.end > token.begin) one["bytes"] = {token.begin, token.end};
    list.push_back(std::move(one));
  }
  return list;
}

Json next_json(const LookedAt& at, const NextTokens& next) {
  Json candidates = Json::array();
  for (const NextTokens::Candidate& one : next.candidates) {
    candidates.push_back({{"id", one.id},
                          {"text", at.guess_text(next.token, one.id)},
                          {"logit", brief(one.logit)},
                          {"p", brief(std::exp(one.logit - next.lse))}});
  }
  return {{"token", next.token},
          {"lse", brief(next.lse)},
          {"candidates", std::move(candidates)},
          {"rest", brief(next.rest)}};
}

Json look_parts(const LookedAt& at, const LookPartsOptions& options) {
  Json out{{"facts", facts_json(at.spec)},
           {"tokens", tokens_json(at.tokens)},
           {"ladder", ladder_json(at)},
           {"heads", heads_json(at, options)},
           {"story", story_json(at)}};
  if (!at.source.empty()) out["source"] = tokens_json(at.source);
  if (!at.seen.whole) out["rows"] = {{"first", at.seen.rows.first}, {"count", at.seen.rows.count}};
  if (at.next) out["next"] = next_json(at, *at.next);
  if (Json experts = experts_json(at); !experts.empty()) out["experts"] = std::move(experts);
  return out;
}

Json look_report(const LookedAt& at, const LookHeading& heading, const LookPartsOptions& options) {
  Json report = look_parts(at, options);
  report["report"] = "look";
  report["model"] = heading.model;
  report["title"] = heading.title;
  report["lang"] = language_of(heading.title);
  if (!heading.made_with.empty()) report["made_with"] = heading.made_with;
  if (!heading.cut.empty()) report["cut"] = heading.cut;
  return report;
}

std::string language_of(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (is_chinese(c)) return "zh";
    at += c.bytes;
  }
  return "en";
}

std::string name_of_model(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

std::vector<LookArray> look_arrays(const LookedAt& at, std::span<const float> logits) {
  const Looked& seen = at.seen;
  const auto rows = static_cast<int64_t>(seen.text.ids.size());
  QKV_CHECK(seen.whole, "of a text of ", rows, " tokens only ", seen.rows.count, " rows are kept",
            Hint("look at a text of ", LookOptions{}.whole, " tokens or fewer"));
  std::vector<LookArray> all;
  for (size_t level = 0; level < seen.streams.size(); ++level) {
    all.push_back({level == 0 ? "embed" : fmt::format("resid.{}", level - 1), seen.streams[level], {rows, seen.width}});
  }
  for (const SeenAttention& a : seen.attentions) {
    const std::string name = name_of(at.spec, a.place);
    all.push_back({name + ".q", a.q, {a.queries, a.heads, a.width}});
    all.push_back({name + ".k", a.k, {a.keys, a.kv_heads, a.width}});
    all.push_back({name + ".v", a.v, {a.keys, a.kv_heads, a.value_width}});
    all.push_back({name + ".z", a.z, {a.queries, a.heads, a.value_width}});
    all.push_back({name + ".probs", a.pattern, {a.queries, a.heads, a.keys}});
  }
  all.push_back({"logits", logits, {rows, static_cast<int64_t>(logits.size()) / rows}});
  return all;
}

void write_npz(const std::filesystem::path& path, const LookedAt& at, std::span<const float> logits) {
  const std::vector<LookArray> arrays = look_arrays(at, logits);
  NpzWriter out(path);
  const auto texts = [&](const std::string& name, const std::vector<ShownToken>& tokens, std::span<const int32_t> ids) {
    std::vector<std::string> list;
    for (const ShownToken& token : tokens) list.push_back(token.text);
    out.add(name, list);
    out.add(name + ".ids", ids, {std::ssize(ids)});
  };
  texts("tokens", at.tokens, at.seen.text.ids);
  if (!at.source.empty()) texts("source", at.source, at.seen.text.source);
  for (const LookArray& array : arrays) out.add(array.name, array.numbers, array.shape);
  out.commit();
}

}  // namespace qkv

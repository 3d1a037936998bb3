#include "infer/text_distance.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "core/host_values.h"

namespace qkv {
namespace {

// Logits of one text, [T, V].
std::vector<float> logits_of(const Model& model, const Engine& engine, Precision precision,
                             std::span<const int32_t> ids) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  const Rows rows = Rows::batch(cx, 1, static_cast<int64_t>(ids.size()));
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  if (model.spec().has_source()) {
    input.source_ids = input.ids;
    input.source_rows = &rows;
  }
  return host_floats(model.logits(cx, input));
}

}  // namespace

TextDistance distance_on_texts(const Model& before, const Model& after, const Engine& engine,
                               std::span<const TokenText> texts, const TextDistanceOptions& options) {
  int64_t total = 0, longest = 0;
  for (const TokenText& text : texts) {
    total += std::ssize(text.ids);
    longest = std::max(longest, std::ssize(text.ids));
  }
  QKV_CHECK(longest >= 2, texts.size(), " texts of ", total, " tokens have no next token to compare",
            Hint("give a longer text"));
  const auto width = static_cast<size_t>(before.spec().vocabulary);
  TextDistance distance;
  double nats_before = 0, nats_after = 0;
  int64_t predicted = 0;
  for (const TokenText& text : texts) {
    const std::vector<float> a = logits_of(before, engine, options.precision, text.ids),
                             b = logits_of(after, engine, options.precision, text.ids);
    for (size_t r = 0; r < text.ids.size(); ++r) {
      const std::vector<double> p = log_softmax(std::span(a).subspan(r * width, width)),
                                q = log_softmax(std::span(b).subspan(r * width, width));
      distance.kl += kl_divergence(p, q);
      const bool same =
          std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
      distance.agree += same ? 1 : 0;
      distance.tokens += 1;
      if (text.target(r) == TokenText::kIgnored) continue;
      const auto next = static_cast<size_t>(text.target(r));
      nats_before -= p[next];
      nats_after -= q[next];
      predicted += 1;
    }
    if (options.progress) options.progress(distance.tokens, total);
  }
  distance.kl /= static_cast<double>(distance.tokens);
  distance.agree /= static_cast<double>(distance.tokens);
  if (before.spec().kind == ModelSpec::Kind::decoder_only && predicted > 0) {
    distance.perplexity_before = std::exp(nats_before / static_cast<double>(predicted));
    distance.perplexity_after = std::exp(nats_after / static_cast<double>(predicted));
  }
  return distance;
}

}  // namespace qkv

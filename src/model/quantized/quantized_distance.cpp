#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "model/quantized/quantized_model.h"

namespace qkv {
namespace {

// Logits of one window, [T, V]. An encoder-decoder reads the window and writes it.
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

// log softmax, in place.
void to_log_probabilities(std::span<const float> logits, std::vector<double>& out) {
  const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  const double log_sum = most + std::log(sum);
  out.clear();
  for (const float x : logits) out.push_back(static_cast<double>(x) - log_sum);
}

}  // namespace

TextDistance distance_on_text(const Model& before, const Model& after, const Engine& engine, const TextWindows& text) {
  QKV_CHECK(text.ids.size() >= 2 && text.length >= 2, "a text of ", text.ids.size(), " tokens in windows of ",
            text.length, " has no next token to compare", Hint("give a longer text"));
  const auto width = static_cast<size_t>(before.spec().vocabulary), length = static_cast<size_t>(text.length);
  TextDistance distance;
  double surprise_before = 0, surprise_after = 0;
  int64_t predicted = 0;
  std::vector<double> p, q;
  for (size_t first = 0; first < text.ids.size(); first += length) {
    const auto window = std::span(text.ids).subspan(first, std::min(length, text.ids.size() - first));
    const std::vector<float> a = logits_of(before, engine, text.precision, window),
                             b = logits_of(after, engine, text.precision, window);
    for (size_t r = 0; r < window.size(); ++r) {
      to_log_probabilities(std::span(a).subspan(r * width, width), p);
      to_log_probabilities(std::span(b).subspan(r * width, width), q);
      for (size_t v = 0; v < width; ++v) distance.kl += std::exp(p[v]) * (p[v] - q[v]);
      const bool same =
          std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
      distance.agree += same ? 1 : 0;
      distance.tokens += 1;
      if (r + 1 == window.size()) continue;
      const auto next = static_cast<size_t>(window[r + 1]);
      surprise_before -= p[next];
      surprise_after -= q[next];
      predicted += 1;
    }
    if (text.progress) text.progress(distance.tokens, static_cast<int64_t>(text.ids.size()));
  }
  distance.kl /= static_cast<double>(distance.tokens);
  distance.agree /= static_cast<double>(distance.tokens);
  if (before.spec().kind == ModelSpec::Kind::decoder_only && predicted > 0) {
    distance.perplexity_before = std::exp(surprise_before / static_cast<double>(predicted));
    distance.perplexity_after = std::exp(surprise_after / static_cast<double>(predicted));
  }
  return distance;
}

}  // namespace qkv

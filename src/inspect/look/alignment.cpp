#include "inspect/look/alignment.h"

#include <algorithm>

#include "base/display_width.h"
#include "base/error.h"
#include "inspect/taps/recorder.h"
#include "text/tokenizer/display_spans.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// A character that is a word of its own: wide ones (Chinese, emoji) and punctuation, except inside words.
bool stands_alone(std::string_view character) {
  if (character.size() == 1) {
    const auto c = static_cast<unsigned char>(character[0]);
    const bool letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c >= 0x80;
    return !letter && c != '\'' && c != '-' && !is_space(character[0]);
  }
  return display_width(character) > 1;
}

std::string trimmed(const std::string& text) {
  size_t begin = 0, end = text.size();
  while (begin < end && is_space(text[begin])) ++begin;
  while (end > begin && is_space(text[end - 1])) --end;
  return text.substr(begin, end - begin);
}

}  // namespace

std::vector<TokenWord> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  const DisplaySpans shown = display_spans(tokenizer, ids);
  std::vector<TokenWord> words;
  bool begins = true;
  for (const DisplaySpan& span : shown.spans) {
    const bool special = span.token_count == 1 && tokenizer.is_special(ids[span.first_token]);
    const std::string text = special ? "" : trimmed(span.text);
    if (!span.text.empty() && is_space(span.text.front())) begins = true;
    if (text.empty()) {
      begins |= special || !span.text.empty();
      continue;
    }
    const bool alone = stands_alone(first_character(text));
    if (begins || alone || words.empty()) words.emplace_back();
    words.back().text += text;
    for (size_t i = 0; i < span.token_count; ++i) words.back().tokens.push_back(span.first_token + i);
    begins = alone || is_space(span.text.back());
  }
  return words;
}

std::vector<std::pair<size_t, size_t>> WordAlignment::pairs() const {
  std::vector<std::pair<size_t, size_t>> all;
  for (size_t t = 0; t < target.size(); ++t) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(t * source.size());
    const auto most = std::max_element(begin, begin + std::ssize(source));
    if (!source.empty() && *most > 0) all.emplace_back(static_cast<size_t>(most - begin), t);
  }
  return all;
}

int64_t alignment_layer(const ModelSpec& spec) {
  const auto layers = std::ssize(spec.decoder.layers);
  return std::max<int64_t>(layers - 2, 0);  // the last but one aligns best with the token it predicts
}

WordAlignment align(const Model& model, const Engine& engine, const Tokenizer& tokenizer, const TokenText& pair,
                    const AlignOptions& options) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(spec.has_source(), "a ", spec.family, " has no cross-attention to align by",
            Hint("take a model that translates: marian, t5, bart or one of qkv train translate"));
  const int64_t layer = options.layer.value_or(alignment_layer(spec)), layers = std::ssize(spec.decoder.layers);
  QKV_CHECK(layer >= 0 && layer < layers, "no layer ", layer, ": the decoder has ", layers, ", 0 to ", layers - 1,
            Hint("leave --layer out for the last but one"));
  const Place place{Stack::cross, static_cast<int16_t>(layer)};
  Recorder recorder({{place, Site::attn_probs}});
  Reader(model, engine, {.precision = options.precision}).look({&pair, 1}, recorder);
  const RecordedTap& seen = recorder.all().front();  // [N, H, S]
  const auto heads = static_cast<size_t>(seen.shape[1]), keys = static_cast<size_t>(seen.shape[2]);

  WordAlignment made{
      .source = words_of(tokenizer, pair.source), .target = words_of(tokenizer, pair.ids), .layer = layer};
  made.weights.assign(made.target.size() * made.source.size(), 0);
  for (size_t t = 0; t < made.target.size(); ++t) {
    double all = 0;
    for (const size_t token : made.target[t].tokens) {
      if (token == 0) continue;  // no row predicts the first token
      const std::span<const float> row = seen.row(static_cast<int64_t>(token) - 1);
      for (size_t s = 0; s < made.source.size(); ++s) {
        double sum = 0;
        for (const size_t key : made.source[s].tokens) {
          for (size_t h = 0; h < heads; ++h) sum += static_cast<double>(row[h * keys + key]);
        }
        made.weights[t * made.source.size() + s] += sum;
        all += sum;
      }
    }
    for (size_t s = 0; s < made.source.size() && all > 0; ++s) made.weights[t * made.source.size() + s] /= all;
  }
  return made;
}

}  // namespace qkv

#include "text/tokenizer/display_spans.h"

#include <algorithm>

#include "text/unicode/utf8.h"

namespace qkv {
namespace {

// The decoded bytes, each with the index of its token.
struct Decoded {
  std::string bytes;
  std::vector<size_t> sources;
};

Decoded decode(const Tokenizer& tokenizer, std::span<const int32_t> ids, DecodeOptions options) {
  Decoded out;
  // A decoder may emit delayed text for an earlier token; the token index must not decrease.
  const auto put = [&](const Decoder::Part& part) {
    out.bytes += part.text;
    const size_t source = std::max(part.source, out.sources.empty() ? 0 : out.sources.back());
    out.sources.insert(out.sources.end(), part.text.size(), source);
  };
  const auto run = tokenizer.start_decoding();
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string_view token = tokenizer.token(ids[i]);
    if (options.skip_specials && tokenizer.is_special(ids[i])) continue;
    run->take({.text = std::string(token), .source = i}, put);
  }
  run->finish(put);
  return out;
}

// The unit of display: a grapheme, or invalid bytes shown as one U+FFFD.
size_t first_unit(std::string_view bytes) {
  return utf8_length(bytes) > 0 ? first_grapheme(bytes).size() : invalid_utf8_length(bytes);
}

}  // namespace

DisplaySpans display_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids, DecodeOptions options) {
  const Decoded decoded = decode(tokenizer, ids, options);
  // joined[i]: tokens i - 1 and i share a unit of display.
  std::vector<bool> joined(ids.size() + 1, false);
  for (size_t at = 0; at < decoded.bytes.size();) {
    const size_t end = at + first_unit(std::string_view(decoded.bytes).substr(at));
    for (size_t token = decoded.sources[at] + 1; token <= decoded.sources[end - 1]; ++token) joined[token] = true;
    at = end;
  }
  DisplaySpans out;
  size_t at = 0;
  for (size_t token = 0; token < ids.size(); ++token) {
    if (!joined[token]) out.spans.push_back({.first_token = token});
    ++out.spans.back().token_count;
    out.span_of.push_back(out.spans.size() - 1);
    if (joined[token + 1]) continue;
    size_t end = at;
    while (end < decoded.bytes.size() && decoded.sources[end] <= token) ++end;
    DisplaySpan& span = out.spans.back();
    std::string bytes = decoded.bytes.substr(at, end - at);
    span.text = take_utf8(bytes, MoreBytes::no);
    span.begin = out.text.size();
    out.text += span.text;
    span.end = out.text.size();
    at = end;
  }
  return out;
}

}  // namespace qkv

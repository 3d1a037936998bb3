#include "world/ngrams.h"

#include <vector>

namespace qkv {
namespace {

std::vector<std::string_view> ngram_parts(std::string_view text, Language language) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t i = 1; i <= text.size(); ++i) {
    const bool ends =
        i == text.size() ||
        (language == Language::english ? text[i] == ' ' : (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80);
    if (!ends) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + (language == Language::english ? 1 : 0);
  }
  return parts;
}

// FNV-1a over the parts, each followed by a zero byte.
template <class Visit>
void each_ngram(std::string_view text, Language language, size_t n, const Visit& visit) {
  const std::vector<std::string_view> parts = ngram_parts(text, language);
  for (size_t i = 0; i + n <= parts.size(); ++i) {
    uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
    for (size_t k = i; k < i + n; ++k) {
      for (const char c : parts[k]) mix(static_cast<unsigned char>(c));
      mix(0);
    }
    visit(hash);
  }
}

}  // namespace

void SeenNgrams::add(std::string_view text) {
  each_ngram(text, language_, static_cast<size_t>(n_), [&](uint64_t hash) { hashes_.insert(hash); });
}

SeenNgrams::Share SeenNgrams::of(std::string_view text) const {
  Share share;
  each_ngram(text, language_, static_cast<size_t>(n_), [&](uint64_t hash) {
    share.seen += hashes_.contains(hash) ? 1U : 0U;
    ++share.all;
  });
  return share;
}

}  // namespace qkv

#include "inspect/look/gold_tokens.h"

#include <algorithm>

#include "inspect/heads/head_labels.h"

namespace qkv {

TextSum error_sum(const WordPairs& found, const GoldPair& gold) {
  int64_t wanted = 0, allowed = 0;
  for (const auto& link : found) {
    const bool is_sure = std::binary_search(gold.links.begin(), gold.links.end(), link);
    wanted += is_sure ? 1 : 0;
    allowed += is_sure || std::binary_search(gold.possible.begin(), gold.possible.end(), link) ? 1 : 0;
  }
  const int64_t all = std::ssize(found) + std::ssize(gold.links);
  return {.sum = static_cast<double>(all - wanted - allowed), .count = all};
}

PairTokens tokens_of(const PairTokenizers& tokenizers, const GoldPair& pair) {
  const Encoding source = tokenizers.source.encode_full(pair.source.text, {.unit = OffsetUnit::bytes}),
                 target = tokenizers.target.encode_full(pair.target.text, {.unit = OffsetUnit::bytes});
  PairTokens made{.text = {.ids = tokenizers.start, .source = source.ids},
                  .source = tokens_of_words(pair.source, source),
                  .target = tokens_of_words(pair.target, target)};
  made.text.ids.insert(made.text.ids.end(), target.ids.begin(), target.ids.end());
  const auto before = static_cast<int32_t>(tokenizers.start.size());
  for (auto& word : made.target) {
    for (int32_t& token : word) token += before;
  }
  return made;
}

double mean_of_half(std::span<const TextSum> sums, bool judging) {
  TextSum all;
  for (const TextSum& one : of_half(sums, judging)) all += one;
  return all.count > 0 ? all.sum / static_cast<double>(all.count) : 1;
}

std::map<size_t, std::vector<size_t>> rows_of_texts(const PassTexts& pass) {
  std::map<size_t, std::vector<size_t>> rows;
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    if (pass.rows[r].text >= 0) rows[static_cast<size_t>(pass.rows[r].text)].push_back(r);
  }
  return rows;
}

}  // namespace qkv

// What is watched in the tests: five short texts and the frequencies of others.
#pragma once

#include <utility>
#include <vector>

#include "inspect/watch/watcher.h"
#include "support/some_ids.h"

namespace qkv::test {

inline std::vector<TokenText> watched_texts(const Model& model) {
  std::vector<TokenText> texts;
  for (const int64_t length : {9, 14, 6, 21, 11}) {
    TokenText text{.ids = some_ids(length, static_cast<uint32_t>(length))};
    text.targets = some_ids(length, 77);
    text.targets.back() = TokenText::kIgnored;
    if (model.spec().has_source()) text.source = some_ids(length + 3, 5);
    texts.push_back(std::move(text));
  }
  return texts;
}

inline WatchData watch_data(const Model& model) {
  TokenCounts counts(model.spec().vocabulary, some_ids(50, 3));
  counts.add(some_ids(400, 1), some_ids(400, 2));
  counts.finish();
  return {.texts = watched_texts(model), .held_out = true, .counts = std::move(counts)};
}

inline const WatchOptions kWatchOptions{.steps = 100, .batch_tokens = 512, .length = 30, .seed = 4};

}  // namespace qkv::test

#include "data/dataset_stats.h"

#include <algorithm>
#include <bit>

namespace qkv {

SplitStats split_stats(const PackedSplit& split, size_t most_frequent, FunctionRef<void(uint64_t tokens)> on_progress) {
  SplitStats stats;
  stats.lengths.resize(split.pairs() ? 2 : 1);
  for (uint64_t entry = 0; entry < split.entries(); ++entry) {
    std::vector<uint64_t>& counts = stats.lengths[entry % stats.lengths.size()];
    const auto bin = static_cast<size_t>(std::bit_width(split.length(entry)) - 1);
    if (counts.size() <= bin) counts.resize(bin + 1);
    ++counts[bin];
  }

  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const auto vocabulary = static_cast<int32_t>(split.chats() ? split.vocabulary() / 2 : split.vocabulary());
  std::vector<uint64_t> counts(static_cast<size_t>(vocabulary));
  std::vector<int32_t> ids;
  for (uint64_t begin = 0; begin < split.tokens(); begin += kPiece) {
    ids.resize(std::min(kPiece, split.tokens() - begin));
    split.copy(begin, ids);
    for (const int32_t id : ids) ++counts[static_cast<size_t>(id % vocabulary)];  // of an answer or not
    on_progress(begin + ids.size());
  }
  for (size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] > 0) stats.frequent.emplace_back(static_cast<int32_t>(id), counts[id]);
  }
  stats.distinct = stats.frequent.size();
  std::stable_sort(stats.frequent.begin(), stats.frequent.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  stats.frequent.resize(std::min(most_frequent, stats.frequent.size()));
  return stats;
}

}  // namespace qkv

#include "inspect/heads/label_cause.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace qkv {
namespace {

int32_t first_guess(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

PatchedPairs patch_pairs(Reader& reader, std::span<const LabelPair> pairs, std::span<const size_t> heads,
                         const PatchedPairsOptions& options) {
  const std::vector<HeadId> ids = all_heads(reader.model().spec());
  PatchedPairs found{.restored = std::vector<std::vector<TextSum>>(ids.size())};
  std::map<size_t, size_t> group;  // of a text
  for (const LabelPair& pair : pairs) {
    if (found.usable == static_cast<int64_t>(options.most)) break;
    ++found.made;
    Patcher patcher(reader, pair.clean, pair.corrupt);
    const int32_t answer = first_guess(patcher.clean_logits()), wrong = first_guess(patcher.corrupt_logits());
    const auto prefers = [&](const std::vector<float>& logits) {
      return static_cast<double>(logits[static_cast<size_t>(answer)]) -
             static_cast<double>(logits[static_cast<size_t>(wrong)]);
    };
    const double lost = prefers(patcher.clean_logits()) - prefers(patcher.corrupt_logits());
    if (answer != wrong && lost >= kLeastDifference) {
      std::vector<Patch> patches;
      for (const size_t h : heads) {
        Patch& patch = patches.emplace_back();
        for (const int32_t at : pair.query) {
          patch.push_back({.place = ids[h].place(), .site = Site::attn_z, .head = ids[h].head, .position = at});
        }
      }
      const PatchOutcome outcome = patcher.outcome(patches, answer, wrong);
      const size_t g = group.try_emplace(pair.text, group.size()).first->second;
      for (size_t i = 0; i < heads.size(); ++i) {
        found.restored[heads[i]].resize(group.size());
        found.restored[heads[i]][g].add(outcome.restored(i));
      }
      ++found.usable;
      found.texts = std::ssize(group);
    }
    if (options.finished && !options.finished(static_cast<size_t>(found.made))) break;
  }
  return found;
}

std::vector<TextSum> mean_of_others(const PatchedPairs& patched, size_t head) {
  std::vector<TextSum> mean(patched.restored[head].size());
  double others = 0;
  for (size_t h = 0; h < patched.restored.size(); ++h) {
    if (h == head || patched.restored[h].empty()) continue;
    ++others;
    for (size_t t = 0; t < mean.size(); ++t) mean[t].sum += patched.restored[h][t].sum;
  }
  for (size_t t = 0; t < mean.size(); ++t) {
    mean[t].sum /= std::max(others, 1.0);
    mean[t].count = patched.restored[head][t].count;
  }
  return mean;
}

}  // namespace qkv

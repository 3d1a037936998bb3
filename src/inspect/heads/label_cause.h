// Does a head that looks where a label points carry anything from there? Its output z at the query word alone is
// patched: the model reads the changed text of a pair (label_pairs.h), but there the head writes what it wrote in the
// clean one. What comes back of the clean answer is compared with the mean of all other heads, each patched alone.
#pragma once

#include "inspect/heads/label_pairs.h"
#include "inspect/patch/patch.h"

namespace qkv {

// Of the pairs of one half of the texts.
struct PatchedPairs {
  int64_t made = 0, usable = 0, texts = 0;     // usable: clean and changed text have different answers
  std::vector<std::vector<TextSum>> restored;  // [head, text]; of heads that were not patched: no counts
};

struct PatchedPairsOptions {
  size_t most = 40;                // usable pairs
  Reader::Finished finished = {};  // called after each pair
};

// Pairs count whose texts have different first guesses after the query, which patching can bring back: the difference of
// their logits changes by at least kLeastDifference.
inline constexpr double kLeastDifference = 1;
PatchedPairs patch_pairs(Reader& reader, std::span<const LabelPair> pairs, std::span<const size_t> heads,
                         const PatchedPairsOptions& options);

// The mean over all other heads, text by text.
std::vector<TextSum> mean_of_others(const PatchedPairs& patched, size_t head);

}  // namespace qkv

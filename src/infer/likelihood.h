// How likely a model finds given tokens: what perplexity and comparisons of sentences are made of.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "infer/runner.h"

namespace qkv {

struct KnownText {
  std::vector<int32_t> ids;
  std::vector<int32_t> source = {};  // what an encoder reads
  int64_t first = 1;                 // ids[first], ids[first + 1], ... are asked about; 1 or more
};

// log p(ids[i] | ids[0 .. i-1], source) of every token asked about, in nats, text after text. Many short texts share a
// pass, long ones take several: no pass has more rows, and logits of no more rows are kept, than the runner's chunk.
// What a token gets never depends on what is beside it. `finished` is told how many texts are done; false ends it
// there.
std::vector<std::vector<double>> log_probabilities(Runner& runner, std::span<const KnownText> texts,
                                                   const std::function<bool(size_t)>& finished = {});

// One stretch of a long text: tokens [context, end) are read, those from `begin` on are asked about.
struct TextWindow {
  int64_t context = 0, begin = 0, end = 0;
};
struct WindowOptions {
  int64_t length = 0;     // tokens a window has at most; 2 or more
  int64_t stride = 0;     // how many of them are new, the others are context; 0: all but the one before them
  bool prefixed = false;  // every window begins with a token of its own, such as BOS, which counts to its length
};
// Cuts a text of so many tokens into windows that ask about every token exactly once. The first token of a text can
// only be asked about if something is before it.
std::vector<TextWindow> windows_of(int64_t tokens, const WindowOptions& options);

}  // namespace qkv

// What look saw, as the report's JSON and as arrays for NumPy.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"
#include "inspect/lens/ladder.h"
#include "inspect/texts/shown_tokens.h"
#include "model/model.h"

namespace qkv::app {

// What was seen, and how its tokens read.
struct LookedAt {
  LookedAt(const Tokenizer* tokenizer, const ModelSpec& spec, Looked seen, Ladder ladder);

  const Tokenizer* tokenizer;  // null: tokens are shown as #403
  const ModelSpec& spec;
  Looked seen;
  Ladder ladder;
  std::vector<ShownToken> tokens, source;

  const std::vector<ShownToken>& queries_of(const SeenAttention& a) const;
  const std::vector<ShownToken>& keys_of(const SeenAttention& a) const;
  // A token as a guess of what follows a row; of an encoder, of what stands there.
  std::string guess_text(int64_t row, int32_t id) const;
  std::string level_name(size_t level) const;  // "embed", "0", .., "out"
};

// The parts tokens, source, ladder, heads and story of a report.
Json look_parts(const LookedAt& at);

// tokens, resid per layer, q, k, v, z and probs per attention, logits. An Error for a text that is not kept whole.
void write_npz(const std::filesystem::path& path, const LookedAt& at, std::span<const float> logits);

}  // namespace qkv::app

// What look saw, as the report's JSON and as arrays for NumPy. The page of an --html file and the live page of the server
// read this report and no other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "inspect/lens/ladder.h"
#include "inspect/look/next_tokens.h"
#include "inspect/texts/shown_tokens.h"
#include "model/model.h"

namespace qkv {

// What was seen, and how its tokens read.
struct LookedAt {
  LookedAt(const Tokenizer* tokenizer, const ModelSpec& spec, Looked seen, Ladder ladder);

  const Tokenizer* tokenizer;  // null: tokens are shown as #403
  const ModelSpec& spec;
  Looked seen;
  Ladder ladder;
  std::optional<NextTokens> next;
  std::vector<ShownToken> tokens, source;

  const std::vector<ShownToken>& queries_of(const SeenAttention& a) const;
  const std::vector<ShownToken>& keys_of(const SeenAttention& a) const;
  // A token as a guess of what follows a row; of an encoder, of what stands there.
  std::string guess_text(int64_t row, int32_t id) const;
  std::string level_name(size_t level) const;  // "embed", "0", .., "out"
};

// The parts tokens, source, ladder, heads, experts, next and story of a report.
struct LookPartsOptions {
  int64_t longest_map = 512;  // tokens; maps of longer texts are left out. 0: none
  bool top = true;            // the heaviest keys of every row
};
Json look_parts(const LookedAt& at, const LookPartsOptions& options = {});
// By number where there is no tokenizer, or where it lacks one of them: a model may have more ids than its tokenizer.
std::vector<ShownToken> shown_ids(const Tokenizer* tokenizer, std::span<const int32_t> ids);
Json tokens_json(const std::vector<ShownToken>& tokens);
Json next_json(const LookedAt& at, const NextTokens& next);

// The parts with what is said about them, and the language of the text.
struct LookHeading {
  std::string model;                  // its name
  std::string title;                  // the text
  std::string made_with = {};         // the command that makes the same report; empty: there is none
  std::vector<std::string> cut = {};  // heads and experts it was made without
};
Json look_report(const LookedAt& at, const LookHeading& heading, const LookPartsOptions& options = {});

// Layers, heads, widths and the like of a model.
Json facts_json(const ModelSpec& spec);

// "zh" if there is a Chinese character in it, else "en".
std::string language_of(std::string_view text);
// The last part of a path.
std::string name_of_model(const std::string& path);

// Numbers of what was seen, by name: embed and resid per layer, q, k, v, z and probs per attention, logits. An Error for
// a text that is not kept whole.
struct LookArray {
  std::string name;
  std::span<const float> numbers;
  std::vector<int64_t> shape;
};
std::vector<LookArray> look_arrays(const LookedAt& at, std::span<const float> logits);
// These, and the tokens.
void write_npz(const std::filesystem::path& path, const LookedAt& at, std::span<const float> logits);

}  // namespace qkv

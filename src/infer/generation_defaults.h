// How a model should generate, as its makers say: generation_config.json, or the same fields of an older config.json.
#pragma once

#include <filesystem>

#include "infer/beam.h"
#include "infer/sampling.h"
#include "model/families/config.h"

namespace qkv {

struct GenerationDefaults {
  // Sampling. What the file does not say is empty.
  bool do_sample = false;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<int64_t> top_k;
  int64_t no_repeat_ngram = 0;

  // Beams.
  int64_t num_beams = 1;
  double length_penalty = 1;
  BeamOptions::Early early = BeamOptions::Early::no;

  // Length, in tokens; max_length counts the decoder's prompt.
  std::optional<int64_t> max_length, max_new_tokens;

  TokenIds tokens;                    // tokens.eos: any of these ends a text
  std::optional<int32_t> forced_bos;  // the token after the first
  std::vector<int32_t> banned;        // never generated, in rising order
};

// `generation` is generation_config.json if there is one. As in transformers it then replaces `config`; only bos, eos,
// pad and decoder start come from `config` where it has none. Unknown fields are ignored. A malformed field or an id
// outside the vocabulary is an Error that names file and field.
GenerationDefaults read_generation_defaults(const Config& config, const std::optional<Config>& generation,
                                            int64_t vocabulary);

// What a user chose; the rest comes from the defaults.
struct BeamChoices {
  std::optional<int64_t> beams = {}, max_new = {}, no_repeat_ngram = {};
  std::optional<double> length_penalty = {}, repetition_penalty = {};
  int64_t n_best = 1;
};
// The text a search starts from. Without max_new a decoder generates until its context is full; the target of an
// encoder-decoder has at most max_length tokens, or 256.
struct BeamStart {
  int64_t prompt = 1;   // tokens of the decoder's prompt
  int64_t context = 0;  // most tokens of a text
  bool has_source = false;
};
// Used by every command that searches with beams.
BeamOptions beam_options(const GenerationDefaults& defaults, const BeamChoices& chosen, const BeamStart& start);

// Of a model on disk. `config`: as its Checkpoint has it.
GenerationDefaults generation_defaults(const std::filesystem::path& model, const Json& config, int64_t vocabulary);

}  // namespace qkv

// How a model's makers say it should write: generation_config.json, or the same fields of an older config.json.
#pragma once

#include <filesystem>

#include "infer/beam.h"
#include "infer/sampling.h"
#include "model/families/config.h"

namespace qkv {

struct GenerationDefaults {
  // Drawing. What the file does not say is empty.
  bool do_sample = false;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<int64_t> top_k;
  int64_t no_repeat_ngram = 0;

  // Beams.
  int64_t num_beams = 1;
  double length_penalty = 1;
  BeamOptions::Early early = BeamOptions::Early::no;

  // Length, in tokens; max_length counts the prompt of the side that writes.
  std::optional<int64_t> max_length, max_new_tokens;

  TokenIds tokens;
  std::optional<int32_t> forced_bos;  // the token after the first
  std::vector<int32_t> banned;        // never written, in rising order
};

// `generation` is generation_config.json if there is one. As in transformers it then says everything; only bos, eos,
// pad and the start of the decoder are still taken from `config` where it is silent. Fields nobody knows are ignored;
// one that is malformed, or an id outside the vocabulary, is an Error that names file and field.
GenerationDefaults read_generation_defaults(const Config& config, const std::optional<Config>& generation,
                                            int64_t vocabulary);

// Of a model on disk. `config`: as its Checkpoint has it.
GenerationDefaults generation_defaults(const std::filesystem::path& model, const Json& config, int64_t vocabulary);

}  // namespace qkv

// Options of commands that write text: how tokens are chosen and where a text ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/command.h"
#include "infer/generation_defaults.h"
#include "infer/grammar/grammar.h"
#include "infer/text_run.h"

namespace qkv::app {

struct TextFlags {
  std::optional<double> temperature, top_p, min_p, typical_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k, no_repeat_ngram, max_new;
  std::vector<std::string> logit_bias, stop;
  uint64_t seed = 0;
  int64_t draft = 0;
  std::string json_schema;  // a file
};

void add_text_flags(Command command, TextFlags& flags);

// What --help says about them.
inline constexpr const char* kTextFlagsHelp =
    "Tokens are chosen as generation_config.json beside the model says; options override it. Without either the most "
    "likely token is taken. Any of --temperature, --top-k, --top-p, --min-p and --typical-p turns on sampling.";

// The grammar of --json-schema; null without it.
grammar::GrammarPtr schema_of(const TextFlags& flags);

// The request's text is one of the grammar, if there is one.
void hold_to(TextRequest& request, const grammar::GrammarPtr& grammar, const Tokenizer& tokenizer);

// Everything but the prompt, its ends and callbacks.
TextRequest text_request(const TextFlags& flags, const GenerationDefaults& defaults);

}  // namespace qkv::app

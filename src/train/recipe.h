// What a training run is, in one short JSON file: model, tokenizer, data, batch, rule and schedule. docs/training.md
// has the list of keys; one that is not known is an Error with the nearest that is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace qkv {

struct Recipe {
  enum class Objective : uint8_t {
    causal,     // the next token of a text
    translate,  // the target of a pair, token by token
    masked,     // the tokens that were hidden
    chat,       // the answers of conversations
  };
  struct TokenizerSource {
    std::string train;  // "bpe", "unigram" or "char"; empty: loaded
    int64_t vocab = 0;
    std::string pattern = "gpt2";       // how BPE cuts text into words
    std::vector<std::string> specials;  // tokens beside those the objective needs
    std::string load;                   // a tokenizer file, or a folder that has one
  };
  struct DataSource {
    std::string world;                          // "en", "zh", "both" or "pairs" (zh to en): the built-in world
    int64_t stories = 0;                        // of it
    std::vector<std::string> files;             // else
    std::string format = "text";                // text, jsonl or tsv
    std::string document = "blank";             // where a text ends: blank, line or file
    bool reversed = false;                      // of pairs: the second side is the source
    double validation = 0.02;                   // share of the documents, by a hash of their text
    bool tail = false;                          // or the last share of each file
    std::vector<std::string> validation_files;  // or files of their own
  };
  struct Evaluation {
    int64_t every = 0;     // steps; 0: at the end only
    int64_t batches = 0;   // of validation data; 0: all of it
    int64_t patience = 0;  // evaluations without a better one before it stops; 0: never
    int64_t samples = 0;   // texts written at each
    std::vector<std::string> prompts;
  };
  struct Saving {
    int64_t every = 0;  // steps; 0: at the end only
    int64_t keep = 2;   // the last ones; the best is always kept
  };

  std::string name, about;
  Objective objective = Objective::causal;
  Json model;  // config.json as Hugging Face spells it; with "preset" what differs from that
  TokenizerSource tokenizer;
  DataSource data;
  int64_t sequence = 256;  // tokens of a text window, or the most of a side of a pair
  int64_t batch_tokens = 4096, micro_batches = 1, steps = 0;
  bool bf16 = true, recompute = false;
  int64_t zero = 0;  // what ranks divide among them; see DataParallel
  uint64_t seed = 1;
  double masking = 0.15;            // of tokens, if masked
  std::vector<std::string> frozen;  // weights that stay as they are; '*' stands for anything
  OptimizerSpec optimizer;
  Schedule schedule;
  LossSpec loss;
  Evaluation evaluate;
  Saving checkpoint;

  Precision precision() const { return bf16 ? Precision::bf16() : Precision::f32(); }
};
const char* name_of(Recipe::Objective objective);

// Ranges are checked and everything fits together; `what` names the file for the message.
Recipe read_recipe(const Json& json, const std::string& what);
Json to_json(const Recipe& recipe);  // every key, defaults too

// A value deep inside by its path, "optimizer.decay=0.01": JSON if it parses as that, else text.
void set_value(Json& recipe, const std::string& assignment);

}  // namespace qkv

// A training run as a short JSON file: model, tokenizer, data, batch, optimiser and schedule. docs/training.md lists
// the keys; an unknown key is an Error with the nearest known one.
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

constexpr int64_t kMaxMicroBatches = 1 << 16;

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
    int64_t max_token_length = 0;       // see TokenizerTraining; 0: any
    std::string pattern = "gpt2";       // how BPE cuts text into words
    std::vector<std::string> specials;  // besides those the objective needs
    bool begin = false;                 // a token of its own before every document: a place to rest for heads
    std::string load;                   // a tokenizer file, or a folder that has one
  };
  struct DataSource {
    std::string world;                          // "en", "zh", "both" or "pairs" (zh to en): the built-in world
    int64_t stories = 0;                        // of the world
    std::vector<std::string> files;             // instead of a world
    std::string format = "text";                // text, jsonl or tsv
    std::string document = "blank";             // where a text ends: blank, line or file
    bool reversed = false;                      // of pairs: the second side is the source
    bool both_ways = false;                     // of pairs: each is read in either direction, drawn anew every time
    std::vector<std::string> kinds;             // of stories of the world; empty: all
    double validation = 0.02;                   // share of the documents, by a hash of their text
    bool tail = false;                          // or the end of each file
    bool cut_long = false;                      // what is too long is cut; otherwise it is left out
    std::vector<std::string> validation_files;  // or separate files
  };
  struct Evaluation {
    int64_t every = 0;     // steps; 0: at the end only
    int64_t batches = 0;   // of validation data; 0: all
    int64_t patience = 0;  // stop after so many evaluations without improvement; 0: never
    int64_t samples = 0;   // texts generated at each evaluation
    std::vector<std::string> prompts;
  };
  struct Saving {
    int64_t every = 0;  // steps; 0: at the end only
    int64_t keep = 2;   // most recent checkpoints; the best is always kept
  };

  std::string name, about;
  Objective objective = Objective::causal;
  Json model;  // a Hugging Face config.json, or "preset" plus the keys that differ from it, or "from" a model's folder
  TokenizerSource tokenizer;
  DataSource data;
  int64_t sequence = 256;  // tokens of a text window, or the longest side of a pair
  int64_t batch_tokens = 4096, micro_batches = 1, steps = 0;
  bool bf16 = true, recompute = false;
  int64_t zero = 0;  // what is sharded over ranks; see DataParallel
  uint64_t seed = 1;
  double masking = 0.15;            // share of tokens hidden, objective masked
  std::vector<std::string> frozen;  // weights that are not trained; '*' matches anything
  OptimizerSpec optimizer;
  Schedule schedule;
  LossSpec loss;
  Evaluation evaluate;
  Saving checkpoint;
  bool watch = false;  // snapshots of how it learns

  // The model whose weights, config and tokenizer the run starts from; empty: it starts from random weights.
  std::string from() const { return model.value("from", std::string()); }
  Precision precision() const { return bf16 ? Precision::bf16() : Precision::f32(); }
};
const char* name_of(Recipe::Objective objective);

// Checks ranges and combinations; `what` names the file in messages. A recipe that leaves micro_batches open has one for
// each of the ranks.
Recipe read_recipe(const Json& json, const std::string& what, int ranks = 1);
Json to_json(const Recipe& recipe);  // every key, defaults too
// With full paths: a run may be resumed from another folder.
Recipe with_full_paths(Recipe recipe);

// Sets a value by its path, "optimizer.decay=0.01": as JSON if it parses, else as text. What begins like a list, an
// object or a quoted text must parse.
void set_value(Json& recipe, const std::string& assignment);

// What a command line changes about a recipe.
struct RecipeChanges {
  std::vector<std::string> files;  // instead of the recipe's data, also where those are the world
  std::string from;                // a model to start from, with its tokenizer
  std::vector<std::string> set;    // as set_value() takes them
};
// With fewer steps than the recipe's, warm-up and decay that are not set themselves take the same share of them.
Json changed_recipe(Json recipe, const RecipeChanges& changes);

}  // namespace qkv

// A model opened from disk, ready to use: weights, tokenizer, generation defaults, engine and precision.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "data/token_text.h"
#include "infer/generation_defaults.h"
#include "infer/runner.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {

// A model of at most so many weights (2.4 GB in f32) is looked into in f32, unless a precision is asked for.
inline constexpr int64_t kMaxExactWeights = 600'000'000;

struct OpenOptions {
  std::optional<Precision> precision = {};  // none: f32 if all weights are f32, otherwise bf16
  bool looks = false;                       // it is opened to look inside: without a precision, f32 unless it is large
  int threads = 0;                          // 0: as many as there are
  BlockWeights blocks = BlockWeights::kept;
  kernels::DeviceChoice device = kernels::DeviceChoice::automatic;
  // What it is opened for: so many texts of so many tokens at once have to fit into the memory of a GPU that is chosen
  // automatically.
  int64_t texts = 1, context = 2048;
};

class OpenModel {
 public:
  // A Hugging Face folder or a GGUF file. Everything is read here. A model can be used without a tokenizer or with a
  // generation_config.json that cannot be read: what went wrong with them is an Error where they are asked for.
  explicit OpenModel(std::string path, const OpenOptions& options = {});
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  const std::string& path() const { return path_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelSpec& spec() const { return checkpoint_.spec; }
  const Model& model() const { return *model_; }
  Model& own_model() { return *model_; }  // for gradients; its weights are not trainable until somebody says so
  const Engine& engine() const { return *engine_; }
  Precision precision() const { return precision_; }
  const OpenOptions& options() const { return options_; }  // what it was opened with

  // Whether a precision was asked for that looking would not have had without asking.
  bool has_own_precision() const;
  // The same model as it is looked into, with OpenOptions::looks: weights of its own; checkpoint, threads and tokenizers
  // are shared. Null if that is how this one computes already.
  std::unique_ptr<OpenModel> looking() const;

  bool has_tokenizer() const { return std::holds_alternative<Tokenizer>(tokenizer_); }
  const Tokenizer& tokenizer() const;
  const Tokenizer& target_tokenizer() const;  // of an encoder-decoder; Marian has one of its own
  const GenerationDefaults& defaults() const;

  // The tokens a target starts with: {decoder_start}. An Error if the model names none.
  std::vector<int32_t> target_start() const;

  // A text with the special tokens the model expects. For an encoder-decoder it is the source, and ids are
  // target_start() and the tokens of the target, if one is given.
  TokenText encode(std::string_view text, std::string_view target = {}) const;
  // The same for source and target, where an empty target is one too: it may consist of the end token.
  TokenText encode_pair(std::string_view source, std::string_view target) const;

  // Caches to run it with, in this model's precision. An Error that says need and have if they do not fit into memory.
  Runner runner(RunOptions options) const;

 private:
  OpenModel(const OpenModel& of, Precision precision);
  void freeze();

  std::string path_;
  OpenOptions options_;
  Checkpoint checkpoint_;
  std::shared_ptr<const Engine> engine_;
  std::unique_ptr<Model> model_;
  Precision precision_;
  std::variant<Tokenizer, Error> tokenizer_;
  std::optional<std::variant<Tokenizer, Error>> target_tokenizer_;  // none: tokenizer_
  std::variant<GenerationDefaults, Error> defaults_;
};

}  // namespace qkv

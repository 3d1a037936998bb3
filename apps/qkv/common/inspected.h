// What every command that looks inside has: a model with its tokenizer, and texts to look at.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/command.h"
#include "inspect/texts/reading.h"
#include "model/checkpoint/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::app {

struct InspectOptions {
  std::string model, dtype = "auto";
  int threads = 0;
};
// The argument MODEL and --dtype, --threads.
void add_inspect_options(Command command, InspectOptions& options);

// Stories of the built-in world that no recipe trains on.
inline constexpr uint64_t kWorldSeed = 20260101, kFirstStory = 1'000'000;

struct TextOptions {
  std::string data;        // FILE, or world, world:zh
  int64_t tokens = 20000;  // how many are looked at, at most
  int64_t length = 256;    // of one text, at most; longer documents are cut
};
void add_text_options(Command command, TextOptions& options);

// A text as a model reads it, and what it was before.
struct InspectedText {
  SeenText seen;
  std::string text, target;  // target: of a pair
};

class Inspected {
 public:
  explicit Inspected(const InspectOptions& options, BlockWeights blocks = BlockWeights::kept);

  const std::string& path() const { return path_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelSpec& spec() const { return checkpoint_.spec; }
  const Model& model() const { return *model_; }
  const Engine& engine() const { return engine_; }
  Precision precision() const { return precision_; }
  const Tokenizer& tokenizer();  // read when first asked for
  bool has_tokenizer();

  // One text with the special tokens the model expects; of an encoder-decoder, `text` is the source. The target's ids
  // begin with what the decoder starts with.
  SeenText read(const std::string& text, const std::string& target = "");

  // Windows of a file, or stories of the built-in world; pairs, where the model translates. An Error if they are fewer
  // than two tokens.
  std::vector<InspectedText> texts(const TextOptions& options);

 private:
  std::string path_;
  Checkpoint checkpoint_;
  Engine engine_;
  std::unique_ptr<Model> model_;
  Precision precision_;
  std::optional<Tokenizer> tokenizer_;
};

std::vector<SeenText> seen(const std::vector<InspectedText>& texts);

}  // namespace qkv::app

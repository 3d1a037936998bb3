// A model opened from disk is whole; parts that cannot be read say why when they are asked for.
#include "open/open_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "infer/likelihood.h"
#include "model/checkpoint/convert.h"
#include "support/pass.h"
#include "text/tokenizer/sentencepiece_bytes.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

void write_text(const fs::path& file, std::string_view text) {
  write_file_atomic(file, std::as_bytes(std::span(text)));
}

void copy_model(const char* name, const fs::path& folder) {
  for (const char* file : {"config.json", "generation_config.json", "model.safetensors"}) {
    fs::copy_file(test::golden(name) / file, folder / file);
  }
}

// A Llama of one layer in bf16 whose file is a hole: any size, and nothing on the disk.
void write_empty_llama(const fs::path& folder, int64_t vocabulary, int64_t width) {
  fs::create_directory(folder);
  write_text(folder / "config.json", Json{{"model_type", "llama"},
                                          {"vocab_size", vocabulary},
                                          {"hidden_size", width},
                                          {"intermediate_size", width},
                                          {"num_hidden_layers", 1},
                                          {"num_attention_heads", 1},
                                          {"rms_norm_eps", 1e-5},
                                          {"tie_word_embeddings", true}}
                                         .dump());
  Json header;
  int64_t at = 0;
  const auto tensor = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t bytes = 2;
    for (const int64_t size : shape) bytes *= size;
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  };
  tensor("model.embed_tokens.weight", {vocabulary, width});
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    tensor(std::string("model.layers.0.") + name + ".weight", {width, width});
  }
  tensor("model.layers.0.input_layernorm.weight", {width});
  tensor("model.layers.0.post_attention_layernorm.weight", {width});
  tensor("model.norm.weight", {width});
  std::string head = header.dump();
  head.resize((head.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  const auto size = static_cast<uint64_t>(head.size());
  std::memcpy(file.data(), &size, sizeof size);
  write_text(folder / "model.safetensors", file + head);
  fs::resize_file(folder / "model.safetensors", file.size() + head.size() + static_cast<size_t>(at));
}

TEST(OpenModel, HasEverythingButWhatIsNotThere) {
  const OpenModel model(test::golden("marian").string(), {.threads = 1});
  EXPECT_EQ(model.spec().family, "marian");
  EXPECT_EQ(model.precision().compute, DType::f32) << "all weights are f32";
  EXPECT_EQ(model.target_start(), Ids{0});
  EXPECT_EQ(model.defaults().tokens.eos, Ids{2});
  EXPECT_FALSE(model.has_tokenizer());
  expect_error([&] { model.tokenizer(); }, {"has no tokenizer"});
  EXPECT_NE(error_of([&] { model.tokenizer(); })->hint().find("--ids"), std::string::npos);
  expect_error([&] { model.encode("text"); }, {"has no tokenizer"});
  for (const auto& [name, weight] : model.model().weights()) EXPECT_FALSE(weight.trainable) << name;
}

TEST(OpenModel, ComputesInThePrecisionAskedFor) {
  const OpenModel model(test::golden("llama").string(), {.precision = Precision::bf16(), .threads = 1});
  EXPECT_EQ(model.precision().compute, DType::bf16);
  Runner runner = model.runner({.positions = 32});
  EXPECT_EQ(runner.options().precision.compute, DType::bf16);
  const TokenText text{.ids = {1, 5, 7}};
  EXPECT_EQ(log_probabilities(runner, {&text, 1}).front().size(), 2U);
}

// Of a model in bf16; not a byte of its weights is read.
TEST(OpenModel, IsLookedIntoInF32BelowASize) {
  const TempFolder folder;
  const fs::path small = folder.path() / "small";
  convert_model(test::golden("llama"), small, {.to = ConvertOptions::To::hugging_face, .dtype = "BF16"});
  const OpenModel runs(small.string(), {.threads = 1});
  EXPECT_EQ(runs.precision().compute, DType::bf16);
  const std::unique_ptr<OpenModel> looks = runs.looking();
  ASSERT_NE(looks, nullptr);
  EXPECT_EQ(looks->precision().compute, DType::f32);
  EXPECT_EQ(&looks->engine(), &runs.engine()) << "no second pool of threads";
  EXPECT_EQ(looks->looking(), nullptr) << "it is looked into as it is";
  EXPECT_EQ(OpenModel(small.string(), {.looks = true, .threads = 1}).precision().compute, DType::f32);
  for (const bool looking : {false, true}) {  // what is asked for decides
    const OpenModel asked(small.string(), {.precision = Precision::bf16(), .looks = looking, .threads = 1});
    EXPECT_EQ(asked.precision().compute, DType::bf16);
    EXPECT_EQ(asked.looking(), nullptr);
    EXPECT_TRUE(asked.has_own_precision());
  }
  EXPECT_FALSE(OpenModel(small.string(), {.precision = Precision::f32(), .threads = 1}).has_own_precision());
}

TEST(OpenModel, IsLookedIntoAsItRunsAboveThatSize) {
  const TempFolder folder;
  constexpr int64_t kWidth = 64,
                    kRest = 4 * kWidth * kWidth + 3 * kWidth * kWidth + 3 * kWidth;  // one layer, last norm
  constexpr int64_t kMost = (kMaxExactWeights - kRest) / kWidth;
  for (const bool large : {false, true}) {
    const int64_t vocabulary = kMost + (large ? 1 : 0);
    const fs::path path = folder.path() / (large ? "large" : "small");
    write_empty_llama(path, vocabulary, kWidth);
    const OpenModel model(path.string(), {.looks = true, .threads = 1});
    int64_t weights = 0;
    for (const auto& [name, weight] : model.model().weights()) weights += weight.shape().count();
    EXPECT_EQ(weights > kMaxExactWeights, large);
    EXPECT_EQ(model.precision().compute, large ? DType::bf16 : DType::f32);
  }
}

TEST(OpenModel, EncodesPairsFromTheStartOfTheTarget) {
  const TempFolder folder;
  copy_model("t5", folder.path());
  fs::copy_file(test::golden("tokenizers") / "unigram" / "tokenizer.json", folder.path() / "tokenizer.json");
  const OpenModel model(folder.path().string(), {.threads = 1});
  ASSERT_TRUE(model.has_tokenizer());
  const TokenText pair = model.encode("the cat", "die Katze");
  EXPECT_EQ(pair.source, model.tokenizer().encode("the cat"));
  Ids target = model.tokenizer().encode("die Katze");
  target.insert(target.begin(), 0);
  EXPECT_EQ(pair.ids, target);
  EXPECT_EQ(pair.text, "the cat");
  EXPECT_EQ(pair.target_text, "die Katze");
  EXPECT_EQ(model.encode("the cat").ids, Ids{0});
}

// Looking inside needs no generation_config.json.
TEST(OpenModel, OpensWithBrokenDefaults) {
  const TempFolder folder;
  copy_model("llama", folder.path());
  write_text(folder.path() / "generation_config.json", R"({"num_beams": 0})");
  const OpenModel model(folder.path().string(), {.threads = 1});
  expect_error([&] { model.defaults(); }, {"num_beams"});
}

// Marian cuts the target by rules of its own.
TEST(OpenModel, EncodesTheTargetWithItsOwnTokenizer) {
  const TempFolder folder;
  copy_model("t5", folder.path());
  test::ModelBytes source;  // it knows letters alone
  source.pieces = test::piece_field("<unk>", 0, test::kUnknown) + test::piece_field("<s>", 0, test::kControl) +
                  test::piece_field("</s>", 0, test::kControl) + test::piece_field("\u2581", -1) +
                  test::piece_field("a", -2) + test::piece_field("b", -3);
  write_text(folder.path() / "source.spm", source.bytes());
  write_text(folder.path() / "target.spm", test::ModelBytes{}.bytes());
  write_text(folder.path() / "vocab.json",
             R"({"</s>": 0, "<unk>": 1, "\u2581": 2, "a": 3, "b": 4, "ab": 5, "\u2581ab": 6, "<pad>": 7})");
  const OpenModel model(folder.path().string(), {.threads = 1});
  ASSERT_NE(model.tokenizer().encode("ab ab"), model.target_tokenizer().encode("ab ab"));
  Ids target = model.target_tokenizer().encode("ab ab");
  ASSERT_FALSE(target.empty());
  target.insert(target.begin(), 0);
  const TokenText pair = model.encode("ab ab", "ab ab");
  EXPECT_EQ(pair.ids, target);
  EXPECT_EQ(pair.source, model.tokenizer().encode("ab ab"));
}

}  // namespace
}  // namespace qkv

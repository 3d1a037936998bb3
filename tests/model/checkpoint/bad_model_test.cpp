// Inconsistent model folders: one error each, with the file, the key, both values and a hint.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "io/safetensors_folder.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace bad_model_test {

namespace fs = std::filesystem;

struct Case {
  std::string name, family;
  Json patch;  // to config.json
  std::vector<std::string> says;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class BadConfig : public testing::TestWithParam<Case> {};

TEST_P(BadConfig, IsRefused) {
  const Case& c = GetParam();
  const TempFolder folder;
  fs::copy(test::golden(c.family) / "model.safetensors", folder.path());
  Json config = parse_json(read_file(test::golden(c.family) / "config.json", 1 << 20), "config.json");
  for (const auto& [key, value] : c.patch.items()) {  // null removes, as a merge patch does
    if (value == "<null>") {
      config.erase(key);
    } else {
      config[key] = value;
    }
  }
  folder.write("config.json", config.dump());
  const std::optional<Error> error = error_of([&] { Checkpoint::open(folder.path()); });
  ASSERT_TRUE(error.has_value()) << "no error";
  EXPECT_EQ(error->kind(), Error::Kind::input) << error->what();
  EXPECT_FALSE(error->hint().empty());
  for (const std::string& part : c.says) {
    EXPECT_NE(std::string(error->what()).find(part), std::string::npos)
        << "'" << part << "' is not in: " << error->what();
  }
}

const char* const kGone = "<null>";

INSTANTIATE_TEST_SUITE_P(
    Of, BadConfig,
    testing::Values(
        Case{"unknown_family",
             "llama",
             {{"model_type", "lama"}},
             {"model_type", "'lama'", "not known", "the nearest known is llama"}},
        Case{"no_family", "llama", {{"model_type", kGone}}, {"'model_type' is missing"}},
        Case{"family_is_a_number", "llama", {{"model_type", 3}}, {"'model_type' is '3'", "must be a text"}},
        Case{"width_missing", "llama", {{"hidden_size", kGone}}, {"'hidden_size' is missing"}},
        Case{"width_is_text", "llama", {{"hidden_size", "64"}}, {"'hidden_size'", "must be a whole number"}},
        Case{"width_broken", "llama", {{"hidden_size", 32.5}}, {"'hidden_size'", "32.5", "whole number"}},
        Case{"width_zero", "llama", {{"hidden_size", 0}}, {"width is 0", "[1, "}},
        Case{"width_negative", "llama", {{"hidden_size", -32}}, {"width is -32"}},
        Case{"width_absurd", "llama", {{"hidden_size", 4611686018427387904}}, {"width is 4611686018427387904"}},
        Case{"width_beyond_64_bits", "llama", {{"hidden_size", 18446744073709551615U}}, {"must be below 2^63"}},
        Case{"another_width", "llama", {{"hidden_size", 48}}, {"model.embed_tokens.weight", "is [96, 32]", "[96, 48]"}},
        Case{"no_layers", "llama", {{"num_hidden_layers", 0}}, {"0 layers"}},
        Case{"absurd_layers", "llama", {{"num_hidden_layers", 2147483647}}, {"2147483647 layers"}},
        Case{"more_layers", "llama", {{"num_hidden_layers", 3}}, {"has no tensor 'model.layers.2.", "are missing"}},
        Case{"fewer_layers", "llama", {{"num_hidden_layers", 1}}, {"9 tensors", "'model.layers.1.", "another model"}},
        Case{"no_heads", "llama", {{"num_attention_heads", 0}}, {"heads is 0"}},
        Case{"heads_do_not_divide", "llama", {{"num_key_value_heads", 3}}, {"4 heads do not divide over 3"}},
        Case{"more_kv_heads", "llama", {{"num_key_value_heads", 8}}, {"key/value heads is 8"}},
        Case{"odd_head_width", "llama", {{"head_dim", 7}}, {"columns [0, 7) turn"}},
        Case{"vocabulary", "llama", {{"vocab_size", 97}}, {"is [96, 32]", "[97, 32]"}},
        Case{"vocabulary_zero", "llama", {{"vocab_size", 0}}, {"vocabulary is 0"}},
        Case{"epsilon_is_text", "llama", {{"rms_norm_eps", "1e-6"}}, {"'rms_norm_eps'", "must be a number"}},
        Case{"epsilon_absurd", "llama", {{"rms_norm_eps", 2.0}}, {"epsilon is 2"}},
        Case{"activation", "llama", {{"hidden_act", "sine"}}, {"'sine'", "known are silu"}},
        Case{"dtype", "llama", {{"dtype", "int3"}}, {"'int3'", "float32, bfloat16 or float16"}},
        Case{"tie_is_a_number", "llama", {{"tie_word_embeddings", 1}}, {"must be true or false"}},
        Case{"rope_type", "llama", {{"rope_parameters", {{"rope_type", "spiral"}}}}, {"'spiral'", "known are default"}},
        Case{"rope_base", "llama", {{"rope_parameters", {{"rope_theta", 0}}}}, {"rope_theta is 0"}},
        Case{"rope_is_a_list", "llama", {{"rope_parameters", Json::array()}}, {"must be an object"}},
        Case{"longrope_factors", "phi3_longrope", {{"head_dim", 4}}, {"longrope", "pairs of columns"}},
        Case{"layer_types_short", "gemma2", {{"layer_types", {"full_attention"}}}, {"names 1 layers"}},
        Case{"layer_types_unknown",
             "gemma2",
             {{"layer_types", {"full_attention", "half_attention"}}},
             {"'half_attention'"}},
        Case{"experts_zero", "mixtral", {{"num_local_experts", 0}}, {"experts is 0"}},
        Case{"experts_more", "mixtral", {{"num_local_experts", 5}}, {"gate.weight' is [4, 32]", "says [5, 32]"}},
        Case{"experts_chosen", "mixtral", {{"num_experts_per_tok", 9}}, {"experts per token is 9"}},
        Case{"groups", "deepseek_v3", {{"n_group", 3}}, {"cannot be chosen"}},
        Case{"latent_rank", "deepseek_v3", {{"kv_lora_rank", 31}}, {"kv_b_proj.weight' is [64, 32]", "says [64, 31]"}},
        Case{"dropout", "gpt2", {{"resid_pdrop", 1.5}}, {"'resid_pdrop'", "[0, 1)"}},
        Case{"positions", "gpt2", {{"n_positions", 64}}, {"wpe.weight", "but the config says [64, 32]"}},
        Case{"token_id", "llama", {{"bos_token_id", 5000000000}}, {"'bos_token_id'", "5000000000"}},
        Case{"token_id_outside", "llama", {{"pad_token_id", 96}}, {"pad token id is 96", "[0, 95]"}},
        Case{"eos_negative", "llama", {{"eos_token_id", {2, -3}}}, {"'eos_token_id'", "-3"}},
        Case{"relative_buckets", "t5", {{"relative_attention_num_buckets", 2}}, {"relative buckets is 2"}},
        Case{"head_map_of_no_stack",
             "llama",
             {{"qkv_heads", {{"sideways", Json::array()}}}},
             {"'sideways'", "is not a stack"}},
        Case{"head_map_short", "llama", {{"qkv_heads", {{"decoder", {{0, 0}}}}}}, {"must hold 2 lists"}},
        Case{"head_map_other_weights",
             "llama",
             {{"qkv_heads", {{"decoder", {{0, 0}, {0, 1}}}}}},
             {"q_proj", "but the config says"}}),
    [](const auto& tested) { return tested.param.name; });

TEST(ConfigFile, ThatIsNoObjectIsRefused) {
  const TempFolder folder;
  fs::copy(test::golden("llama") / "model.safetensors", folder.path());
  for (const char* text : {"[]", "3", "\"llama\"", "{", "", "{\"model_type\": \"llama\"", "{\"a\": 1, \"a\": 2}"}) {
    folder.write("config.json", text);
    EXPECT_TRUE(error_of([&] { Checkpoint::open(folder.path()); }).has_value()) << text;
  }
}

TEST(Folder, WithoutItsFilesIsRefused) {
  const TempFolder folder;
  expect_error([&] { Checkpoint::open(folder.path() / "nowhere"); }, {"no such file or folder"});
  expect_error([&] { Checkpoint::open(folder.path()); }, {"has no config.json"});
  fs::copy(test::golden("llama") / "config.json", folder.path());
  EXPECT_TRUE(error_of([&] { Checkpoint::open(folder.path()); }).has_value()) << "no weights";
}

// One tensor of a good file changed.
void expect_refused(const std::function<void(std::vector<OutgoingTensor>&)>& change,
                    std::initializer_list<std::string_view> says) {
  const TempFolder folder;
  fs::copy(test::golden("llama") / "config.json", folder.path());
  const Safetensors good = Safetensors::open(test::golden("llama") / "model.safetensors");
  std::vector<OutgoingTensor> tensors;
  for (const StoredTensor& entry : good.entries()) tensors.push_back(outgoing(entry));
  change(tensors);
  write_safetensors_folder(folder.path(), tensors, {});
  expect_error([&] { Checkpoint::open(folder.path()); }, says);
}

OutgoingTensor zeros(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, size_t bytes) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .give = [bytes](ByteSink sink) {
            sink(std::vector<std::byte>(bytes));
          }};
}

TEST(Tensors, ThatDoNotFitTheConfigAreRefused) {
  const auto norm = [](std::vector<OutgoingTensor>& all) {
    return std::find_if(all.begin(), all.end(), [](const auto& t) { return t.name == "model.norm.weight"; });
  };
  expect_refused([&](auto& all) { all.erase(norm(all)); }, {"has no tensor 'model.norm.weight'", "1 of 21"});
  expect_refused([&](auto& all) { norm(all)->name = "model.norm.wieght"; }, {"has no tensor 'model.norm.weight'"});
  expect_refused([&](auto& all) { all.push_back(zeros("model.extra", "F32", {2}, 8)); },
                 {"1 tensors", "'model.extra' [2]"});
  expect_refused([&](auto& all) { *norm(all) = zeros("model.norm.weight", "I64", {32}, 256); },
                 {"'model.norm.weight' is I64", "weights are floats"});
  expect_refused([&](auto& all) { *norm(all) = zeros("model.norm.weight", "F32", {33}, 132); }, {"is [33]", "[32]"});
  expect_refused(
      [&](auto& all) {
        *norm(all) = zeros("model.norm.weight", "F32", {1, 32}, 128);
      },
      {"is [1, 32]", "[32]"});
  expect_refused([&](auto& all) { *norm(all) = zeros("model.norm.weight", "F32", {0}, 0); }, {"is [0]", "[32]"});
}

}  // namespace bad_model_test
}  // namespace qkv

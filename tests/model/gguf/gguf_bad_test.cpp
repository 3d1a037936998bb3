// Well-formed GGUF files of models we cannot run, each with its error.
#include <functional>

#include "base/expect_error.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_support.h"

namespace qkv::test {
namespace gguf_bad_test {

struct Bad {
  const char* name;
  std::function<void(HandmadeGguf&)> change;
  std::vector<std::string_view> said;
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.name;
}

// The same keys under another architecture.
void become(HandmadeGguf& g, const std::string& architecture) {
  const auto moved = [&](auto& keys) {
    auto before = std::move(keys);
    keys.clear();
    for (auto& [key, value] : before) {
      keys[key.starts_with("llama.") ? architecture + key.substr(5) : key] = std::move(value);
    }
  };
  moved(g.wholes);
  moved(g.numbers);
  g.texts["general.architecture"] = architecture;
}

const std::vector<Bad> kBad{
    {"no_architecture", [](auto& g) { g.texts.erase("general.architecture"); }, {"has no key", "general.architecture"}},
    {"unknown_architecture", [](auto& g) { g.texts["general.architecture"] = "mamba"; }, {"mamba", "not known"}},
    {"architecture_is_a_number",
     [](auto& g) {
       g.texts.erase("general.architecture");
       g.wholes["general.architecture"] = 3;
     },
     {"general.architecture", "must be text but is u32"}},
    {"bert", [](auto& g) { become(g, "bert"); }, {"BERT without the head"}},
    {"no_layers_key", [](auto& g) { g.wholes.erase("llama.block_count"); }, {"has no key", "llama.block_count"}},
    {"no_layers", [](auto& g) { g.wholes["llama.block_count"] = 0; }, {"llama.block_count is 0", "[1, 4096]"}},
    {"absurd_layers",
     [](auto& g) { g.wholes["llama.block_count"] = 4'000'000'000; },
     {"llama.block_count is 4000000000", "[1, 4096]"}},
    {"more_layers_than_tensors",
     [](auto& g) { g.wholes["llama.block_count"] = 2; },
     {"has no tensor", "blk.1.attn_norm.weight", "9 of 21"}},
    {"text_for_layers",
     [](auto& g) {
       g.wholes.erase("llama.block_count");
       g.texts["llama.block_count"] = "one";
     },
     {"llama.block_count", "must be an integer but is text"}},
    {"no_width", [](auto& g) { g.wholes.erase("llama.embedding_length"); }, {"has no key", "llama.embedding_length"}},
    {"other_width",
     [](auto& g) {
       g.wholes["llama.embedding_length"] = 16;
       g.wholes["llama.rope.dimension_count"] = 8;
     },
     {"tensor 'token_embd.weight' is [10, 8] but the config says [10, 16]"}},
    {"no_heads", [](auto& g) { g.wholes["llama.attention.head_count"] = 0; }, {"head_count is 0", "[1, 65536]"}},
    {"more_kv_heads", [](auto& g) { g.wholes["llama.attention.head_count_kv"] = 4; }, {"head_count_kv is 4", "[1, 2]"}},
    {"heads_do_not_divide",
     [](auto& g) {
       g.wholes["llama.attention.head_count"] = 4;
       g.wholes["llama.attention.head_count_kv"] = 3;
       g.wholes["llama.rope.dimension_count"] = 2;
     },
     {"4 heads do not divide over 3"}},
    {"other_value_width",
     [](auto& g) { g.wholes["llama.attention.value_length"] = 8; },
     {"keys are 4 wide but values 8"}},
    {"rotary_too_wide",
     [](auto& g) { g.wholes["llama.rope.dimension_count"] = 6; },
     {"rope.dimension_count is 6 but heads are 4 wide"}},
    {"rotary_in_part",
     [](auto& g) { g.wholes["llama.rope.dimension_count"] = 2; },
     {"rope.dimension_count is 2", "turns them whole"}},
    {"no_epsilon", [](auto& g) { g.numbers.clear(); }, {"has no key", "llama.attention.layer_norm_rms_epsilon"}},
    {"epsilon_is_whole",
     [](auto& g) {
       g.numbers.erase("llama.attention.layer_norm_rms_epsilon");
       g.wholes["llama.attention.layer_norm_rms_epsilon"] = 1;
     },
     {"layer_norm_rms_epsilon", "must be f32 or f64 but is u32"}},
    {"epsilon_is_absurd",
     [](auto& g) { g.numbers["llama.attention.layer_norm_rms_epsilon"] = 3.0F; },
     {"epsilon is 3", "[0, 0.1]"}},
    {"rope_base_is_no_number",
     [](auto& g) { g.numbers["llama.rope.freq_base"] = std::numeric_limits<float>::quiet_NaN(); },
     {"llama.rope.freq_base is nan", "finite"}},
    {"rope_base_is_absurd", [](auto& g) { g.numbers["llama.rope.freq_base"] = 0.5F; }, {"rope_theta is 0.5"}},
    {"unknown_scaling",
     [](auto& g) { g.texts["llama.rope.scaling.type"] = "ntk"; },
     {"llama.rope.scaling.type is 'ntk'", "not known"}},
    {"scaling_without_factor",
     [](auto& g) { g.texts["llama.rope.scaling.type"] = "linear"; },
     {"has no key", "llama.rope.scaling.factor"}},
    {"yarn_without_context",
     [](auto& g) {
       g.texts["llama.rope.scaling.type"] = "yarn";
       g.numbers["llama.rope.scaling.factor"] = 4;
     },
     {"has no key", "llama.rope.scaling.original_context_length"}},
    {"rope_factors_of_another_width",
     [](auto& g) { g.tensors["rope_freqs.weight"] = {3}; },
     {"rope_freqs.weight is F32 [3] but must be F32 [2]"}},
    {"rope_factor_of_zero",
     [](auto& g) {
       g.tensors["rope_freqs.weight"] = {2};
       g.values["rope_freqs.weight"] = {1, 0};
     },
     {"rope_freqs.weight holds 0", "positive"}},
    {"only_long_factors",
     [](auto& g) { g.tensors["rope_factors_long.weight"] = {2}; },
     {"only one of rope_factors_long"}},
    {"unknown_maths", [](auto& g) { g.numbers["llama.logit_scale"] = 2; }, {"llama.logit_scale is 2", "cannot have"}},
    {"no_embedding", [](auto& g) { g.tensors.erase("token_embd.weight"); }, {"has no tensor token_embd.weight"}},
    {"flat_embedding",
     [](auto& g) { g.tensors["token_embd.weight"] = {80}; },
     {"token_embd.weight is [80] but must be a matrix"}},
    {"other_tokenizer",
     [](auto& g) {
       g.lists["tokenizer.ggml.tokens"] = {"a", "b"};
     },
     {"the tokenizer has 2 tokens but token_embd.weight has 10 rows"}},
    {"token_beyond_vocabulary",
     [](auto& g) { g.wholes["tokenizer.ggml.bos_token_id"] = 10; },
     {"bos token id is 10", "[0, 9]"}},
    {"missing_weight",
     [](auto& g) { g.tensors.erase("blk.0.ffn_up.weight"); },
     {"has no tensor 'blk.0.ffn_up.weight'", "1 of 12"}},
    {"other_shape",
     [](auto& g) {
       g.tensors["blk.0.attn_k.weight"] = {8, 8};
     },
     {"'blk.0.attn_k.weight' is [8, 8] but the config says [4, 8]"}},
    {"swapped_shape",
     [](auto& g) {
       g.tensors["blk.0.ffn_down.weight"] = {16, 8};
     },
     {"'blk.0.ffn_down.weight' is [16, 8] but the config says [8, 16]"}},
    {"extra_tensor",
     [](auto& g) { g.tensors["blk.1.attn_norm.weight"] = {8}; },
     {"1 tensors that the config does not speak of", "blk.1.attn_norm.weight"}},
    {"bias_on_one_alone",
     [](auto& g) { g.tensors["blk.0.attn_q.bias"] = {8}; },
     {"has no tensor", "blk.0.attn_k.bias"}},
    {"experts_without_count_used",
     [](auto& g) { g.wholes["llama.expert_count"] = 2; },
     {"has no key", "llama.expert_used_count"}},
    {"more_experts_used_than_there_are",
     [](auto& g) {
       g.wholes["llama.expert_count"] = 2;
       g.wholes["llama.expert_used_count"] = 3;
     },
     {"experts per token is 3", "[1, 2]"}},
    {"split_latent_attention",
     [](auto& g) {
       become(g, "deepseek2");
       g.tensors["blk.0.attn_k_b.weight"] = {2, 4, 4};
     },
     {"attn_k_b", "does not know"}},
    {"deepseek_v2",
     [](auto& g) { become(g, "deepseek2"); },
     {"deepseek2.expert_gating_func is 1 but DeepSeek V3 has 2"}},
    {"gpt_oss_without_window",
     [](auto& g) {
       become(g, "gpt-oss");
       g.wholes["gpt-oss.expert_feed_forward_length"] = 16;
       g.wholes["gpt-oss.expert_count"] = 2;
       g.wholes["gpt-oss.expert_used_count"] = 1;
     },
     {"has no key", "gpt-oss.attention.sliding_window"}},
};

class BadGguf : public testing::TestWithParam<Bad> {};

TEST_P(BadGguf, IsRefusedInWords) {
  const TempFolder folder;
  HandmadeGguf g = tiny_llama();
  GetParam().change(g);
  const std::filesystem::path path = g.write(folder);
  const std::optional<Error> error = error_of([&] { Checkpoint::open(path); });
  ASSERT_TRUE(error.has_value()) << "it was taken";
  EXPECT_EQ(error->kind(), Error::Kind::input) << error->what();
  EXPECT_FALSE(error->hint().empty()) << error->what();
  for (const std::string_view part : GetParam().said) {
    EXPECT_NE(error->message().find(part), std::string::npos) << "'" << part << "' is not in: " << error->message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadGguf, testing::ValuesIn(kBad), [](const auto& i) { return i.param.name; });

TEST(GoodGguf, IsTakenAsItIs) {
  const TempFolder folder;
  const Checkpoint checkpoint = Checkpoint::open(tiny_llama().write(folder));
  EXPECT_EQ(checkpoint.spec.family, "llama");
  EXPECT_EQ(checkpoint.config.at("rms_norm_eps"), 1e-5);
  EXPECT_EQ(checkpoint.config.at("architectures"), Json({"LlamaForCausalLM"}));
  EXPECT_EQ(checkpoint.spec.tokens.bos, 1);
  EXPECT_FALSE(checkpoint.spec.head.tied);
}

TEST(GoodGguf, UnknownArchitectureNamesTheKnownOnes) {
  const TempFolder folder;
  HandmadeGguf g = tiny_llama();
  g.texts["general.architecture"] = "mamba";
  const std::optional<Error> error = error_of([&] { Checkpoint::open(g.write(folder)); });
  ASSERT_TRUE(error.has_value());
  for (const char* known : {"deepseek2", "gemma3", "gptneox", "llama", "starcoder2"}) {
    EXPECT_NE(error->hint().find(known), std::string::npos) << error->hint();
  }
}

TEST(GoodGguf, FactorsOfNoRuleBecomeLongrope) {
  const TempFolder folder;
  HandmadeGguf g = tiny_llama();
  g.tensors["rope_freqs.weight"] = {2};
  g.values["rope_freqs.weight"] = {1.5F, 7};
  const Json rope = Checkpoint::open(g.write(folder)).config.at("rope_parameters");
  EXPECT_EQ(rope.at("rope_type"), "longrope");
  EXPECT_EQ(rope.at("short_factor"), Json({1.5, 7.0}));
  EXPECT_EQ(rope.at("long_factor"), Json({1.5, 7.0}));
  EXPECT_EQ(rope.at("attention_factor"), 1);
}

TEST(GoodGguf, AnotherFileIsNoModel) {
  const TempFolder folder;
  const auto file = folder.write("model.safetensors", "{}");
  expect_error([&] { Checkpoint::open(file); }, {"is not a GGUF file"});
}

}  // namespace gguf_bad_test
}  // namespace qkv::test

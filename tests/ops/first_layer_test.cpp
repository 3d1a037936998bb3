// Every family's layers through ops, from the recorded hidden states, against what Hugging Face transformers recorded:
// rotary tables, windows, caps, sinks, biases, latent keys, routing and experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "first_layer_block.h"

namespace qkv::test {
namespace {

struct Stack {
  const char* family;
  const char* stack;  // empty: the only one
  size_t recorded;    // what the golden holds of layers 0 and 1: attentions, hidden states, router logits
};

const std::vector<Stack> kStacks{
    {"llama", "", 4},       {"llama3", "", 4},        {"llama_linear", "", 4},  {"qwen2", "", 4},
    {"qwen2_yarn", "", 4},  {"qwen3", "", 4},         {"mistral", "", 4},       {"gemma2", "", 4},
    {"gemma3", "", 4},      {"phi3", "", 4},          {"phi3_longrope", "", 4}, {"gpt2", "", 4},
    {"gpt_neox", "", 4},    {"olmo2", "", 4},         {"mixtral", "", 6},       {"qwen3_moe", "", 6},
    {"gpt_oss", "", 6},     {"deepseek_v3", "", 4},   {"deepseek_yarn", "", 4}, {"bert", "", 4},
    {"bart", "encoder", 4}, {"marian", "encoder", 4}, {"t5", "encoder", 4},     {"t5_gated", "encoder", 4},
    {"bart", "decoder", 6}, {"marian", "decoder", 6}, {"t5", "decoder", 6},     {"t5_gated", "decoder", 6},
};

// The committed set and, where the shared one is there, its larger twin.
std::vector<std::filesystem::path> folders(const std::string& family) {
  std::vector<std::filesystem::path> all{golden(family)};
  if (const auto large = shared("golden/" + family)) all.push_back(*large);
  return all;
}

class Layers : public testing::TestWithParam<Stack> {};

TEST_P(Layers, MatchTransformers) {
  const auto& [family, stack, recorded] = GetParam();
  for (const auto& folder : folders(family)) {
    for (const Kernels* kernels : kernels::all_tables()) {
      size_t seen = 0;
      for (const int64_t layer : {0, 1}) {
        for (const auto& [what, off] : compare_layer({folder, stack, layer, {}}, *kernels)) {
          ++seen;
          EXPECT_TRUE(off.within_golden_bounds()) << folder << ", " << kernels->name << ": " << what << " has " << off;
        }
      }
      EXPECT_EQ(seen, recorded);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Layers, testing::ValuesIn(kStacks), [](const auto& one) {
  return std::string(one.param.family) + (*one.param.stack != 0 ? "_" : "") + one.param.stack;
});

// What a config says must matter: with one entry changed, something recorded no longer matches.
struct Change {
  const char* name;
  const char* family;
  const char* stack;
  int64_t layer;
  const char* patch;
};

const std::vector<Change> kChanges{
    {"norm_epsilon", "llama", "", 0, R"({"rms_norm_eps": 1e-5})"},
    {"rotary_base", "llama", "", 0, R"({"rope_parameters": {"rope_theta": 10100}})"},
    {"linear_factor", "llama_linear", "", 0, R"({"rope_parameters": {"factor": 4.01}})"},
    {"llama3_low_frequency", "llama3", "", 0, R"({"rope_parameters": {"low_freq_factor": 0.9}})"},
    {"llama3_high_frequency", "llama3", "", 0, R"({"rope_parameters": {"high_freq_factor": 6}})"},
    {"yarn_factor", "qwen2_yarn", "", 0, R"({"rope_parameters": {"factor": 4.01}})"},
    {"yarn_attention_factor", "qwen2_yarn", "", 0, R"({"rope_parameters": {"attention_factor": 1}})"},
    {"yarn_truncation", "gpt_oss", "", 1, R"({"rope_parameters": {"truncate": true}})"},
    {"yarn_beta_fast", "gpt_oss", "", 1, R"({"rope_parameters": {"beta_fast": 16}})"},
    {"yarn_beta_slow", "gpt_oss", "", 1, R"({"rope_parameters": {"beta_slow": 2}})"},
    {"yarn_mscale", "deepseek_yarn", "", 0, R"({"rope_parameters": {"mscale": 0.9}})"},
    {"yarn_mscale_all_dim", "deepseek_yarn", "", 0, R"({"rope_parameters": {"mscale_all_dim": 0.9}})"},
    {"longrope_factor", "phi3_longrope", "", 0, R"({"rope_parameters": {"factor": 8.1}})"},
    {"longrope_original_context", "phi3_longrope", "", 0,
     R"({"rope_parameters": {"original_max_position_embeddings": 64}})"},
    {"partial_rotary", "gpt_neox", "", 0, R"({"rope_parameters": {"partial_rotary_factor": 0.5}})"},
    {"parallel_residual", "gpt_neox", "", 0, R"({"use_parallel_residual": false})"},
    {"window", "mistral", "", 0, R"({"sliding_window": 9})"},
    {"window_of_the_layer", "gemma2", "", 1, R"({"layer_types": ["full_attention", "sliding_attention"]})"},
    {"softcap", "gemma2", "", 0, R"({"attn_logit_softcapping": null})"},
    {"query_scale", "gemma2", "", 0, R"({"query_pre_attn_scalar": 8.01})"},
    {"rotary_base_of_the_layer", "gemma3", "", 0,
     R"({"rope_parameters": {"sliding_attention": {"rope_theta": 10100}}})"},
    {"activation", "gpt2", "", 0, R"({"activation_function": "gelu"})"},
    {"renormalised_routing", "qwen3_moe", "", 0, R"({"norm_topk_prob": false})"},
    {"number_of_experts_chosen", "mixtral", "", 0, R"({"num_experts_per_tok": 1})"},
    {"routed_scaling", "deepseek_v3", "", 1, R"({"routed_scaling_factor": 2.51})"},
    {"expert_groups", "deepseek_v3", "", 1, R"({"n_group": 1, "topk_group": 1})"},
    {"interleaved_rotary", "deepseek_v3", "", 0, R"({"rope_interleave": false})"},
    {"number_of_buckets", "t5", "encoder", 0, R"({"relative_attention_num_buckets": 16})"},
    {"bucket_distance", "t5", "encoder", 0, R"({"relative_attention_max_distance": 64})"},
};

class ConfigEntries : public testing::TestWithParam<Change> {};

TEST_P(ConfigEntries, Matter) {
  const Change& c = GetParam();
  const auto compared =
      compare_layer({golden(c.family), c.stack, c.layer, parse_json(c.patch, c.name)}, kernels::ref::table());
  EXPECT_TRUE(std::any_of(compared.begin(), compared.end(),
                          [](const Compared& one) { return !one.distance.within_golden_bounds(); }));
}

INSTANTIATE_TEST_SUITE_P(, ConfigEntries, testing::ValuesIn(kChanges),
                         [](const auto& change) { return std::string(change.param.name); });

// No pair of the llama3 golden falls between the two frequencies: Llama 3.1's own settings, by the published formula.
TEST(RopeTable, BlendsTheMiddleFrequenciesAsLlama31Does) {
  const ops::RopeScaling llama31{
      .kind = ops::RopeScaling::Kind::llama3, .factor = 8, .original_context = 8192, .low_freq = 1, .high_freq = 4};
  const ops::RopeTable table = ops::rope_table(500000, 128, 2, llama31);
  const std::map<size_t, double> frequencies{{0, 1},
                                             {28, 0.0032114459947525913},
                                             {29, 0.002166570763503359},
                                             {32, 0.0005248461609929547},
                                             {34, 0.00017850781276799638},
                                             {35, 9.556212353964683e-05},
                                             {63, 3.068925988914511e-07}};
  for (const auto& [pair, frequency] : frequencies) {
    EXPECT_NEAR(static_cast<double>(table.sin[64 + pair]) / std::sin(frequency), 1, 2e-7) << "pair " << pair;
  }
}

TEST(AlibiSlopes, AreThePublishedOnes) {
  const std::vector<float> eight = ops::alibi_slopes(8), twelve = ops::alibi_slopes(12);
  ASSERT_EQ(eight.size(), 8U);
  ASSERT_EQ(twelve.size(), 12U);
  for (size_t i = 0; i < 8; ++i) {
    const float published = std::ldexp(1.0F, -static_cast<int>(i) - 1);  // 1/2, 1/4, ... 1/256
    EXPECT_EQ(eight[i], published);
    EXPECT_EQ(twelve[i], published);
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(twelve[8 + i], std::exp2(-0.5F - static_cast<float>(i)));
  }
}

}  // namespace
}  // namespace qkv::test

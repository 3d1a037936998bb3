// Keys of published GGUFs, and the config.json their models have on the hub.
#include "model/gguf/gguf_config.h"

#include <cmath>

#include "model/families/config.h"
#include "model/families/family.h"
#include "model/gguf/gguf_support.h"

namespace qkv::test {
namespace {

// Keys alone, with the one tensor that says the vocabulary.
Json config_from(HandmadeGguf g, int64_t vocabulary, int64_t width) {
  const TempFolder folder;
  g.tensors.clear();
  const std::vector<StoredTensor> entries{{"token_embd.weight", "BF16", {vocabulary, width}, {}}};
  return config_of(Gguf::open(g.write(folder)), entries);
}

TEST(GgufConfig, Gemma3Of4B) {
  HandmadeGguf g;
  g.texts = {{"general.architecture", "gemma3"}, {"gemma3.rope.scaling.type", "linear"}};
  g.wholes = {{"gemma3.context_length", 131072},
              {"gemma3.embedding_length", 2560},
              {"gemma3.block_count", 34},
              {"gemma3.feed_forward_length", 10240},
              {"gemma3.attention.head_count", 8},
              {"gemma3.attention.head_count_kv", 4},
              {"gemma3.attention.key_length", 256},
              {"gemma3.attention.value_length", 256},
              {"gemma3.attention.sliding_window", 1024}};
  g.numbers = {{"gemma3.attention.layer_norm_rms_epsilon", 1e-6F},
               {"gemma3.rope.freq_base", 1e6F},
               {"gemma3.rope.scaling.factor", 8}};
  const Json config = config_from(g, 262208, 2560);
  EXPECT_EQ(config.at("model_type"), "gemma3_text");
  EXPECT_EQ(config.at("dtype"), "bfloat16");
  EXPECT_EQ(config.at("query_pre_attn_scalar"), 256);
  EXPECT_EQ(config.at("tie_word_embeddings"), true);
  const Json rope = config.at("rope_parameters");
  EXPECT_EQ(rope.at("full_attention"), (Json{{"rope_theta", 1e6}, {"rope_type", "linear"}, {"factor", 8.0}}));
  EXPECT_EQ(rope.at("sliding_attention"), (Json{{"rope_theta", 10000.0}, {"rope_type", "default"}}));
  const ModelSpec spec = read_spec(Config(config, "gguf"));
  for (size_t i = 0; i < spec.decoder.layers.size(); ++i) {
    const AttentionSpec& a = spec.decoder.layers[i].attention;
    const bool sees_all = i % 6 == 5;
    EXPECT_EQ(a.window, sees_all ? 0 : 1024) << i;
    EXPECT_EQ(a.rope->base, sees_all ? 1e6 : 1e4) << i;
    EXPECT_EQ(a.rope->scaling.factor, sees_all ? 8 : 1) << i;
  }
  g.numbers["gemma3.rope.freq_base_swa"] = 20000;
  EXPECT_EQ(config_from(g, 262208, 2560).at("rope_parameters").at("sliding_attention").at("rope_theta"), 20000.0);
}

TEST(GgufConfig, Gemma2Of27BScalesByItsWidth) {
  HandmadeGguf g;
  g.texts = {{"general.architecture", "gemma2"}};
  g.wholes = {{"gemma2.context_length", 8192},      {"gemma2.embedding_length", 4608},
              {"gemma2.block_count", 46},           {"gemma2.feed_forward_length", 36864},
              {"gemma2.attention.head_count", 32},  {"gemma2.attention.head_count_kv", 16},
              {"gemma2.attention.key_length", 128}, {"gemma2.attention.value_length", 128}};
  g.numbers = {{"gemma2.attention.layer_norm_rms_epsilon", 1e-6F}};
  EXPECT_EQ(config_from(g, 256000, 4608).at("query_pre_attn_scalar"), 144);
  g.wholes["gemma2.block_count"] = 42;
  EXPECT_EQ(config_from(g, 256000, 4608).at("query_pre_attn_scalar"), 128);
  EXPECT_EQ(config_from(g, 256000, 4608).at("attn_logit_softcapping"), 50.0);
}

// Where a Hugging Face config would mean a part of the head by saying nothing, whole heads are said.
TEST(GgufConfig, HeadsThatTurnWholeSaySo) {
  for (const std::string name : {"gptneox", "stablelm"}) {
    for (const uint32_t turned : {16U, 32U}) {
      HandmadeGguf g;
      g.texts = {{"general.architecture", name}};
      g.wholes = {{name + ".context_length", 128},     {name + ".embedding_length", 64},
                  {name + ".block_count", 2},          {name + ".feed_forward_length", 128},
                  {name + ".attention.head_count", 2}, {name + ".rope.dimension_count", turned}};
      g.numbers = {{name + ".attention.layer_norm_epsilon", 1e-5F}};
      const ModelSpec spec = read_spec(Config(config_from(g, 100, 64), name));
      EXPECT_EQ(spec.decoder.layers[0].attention.rope->width, turned) << name;
    }
  }
}

TEST(GgufConfig, DeepSeekV3AsItsLogsPrintIt) {
  HandmadeGguf g;
  g.texts = {{"general.architecture", "deepseek2"}, {"deepseek2.rope.scaling.type", "yarn"}};
  g.wholes = {{"deepseek2.context_length", 163840},
              {"deepseek2.embedding_length", 7168},
              {"deepseek2.block_count", 61},
              {"deepseek2.feed_forward_length", 18432},
              {"deepseek2.attention.head_count", 128},
              {"deepseek2.attention.head_count_kv", 128},
              {"deepseek2.attention.key_length", 192},
              {"deepseek2.attention.value_length", 128},
              {"deepseek2.attention.q_lora_rank", 1536},
              {"deepseek2.attention.kv_lora_rank", 512},
              {"deepseek2.rope.dimension_count", 64},
              {"deepseek2.rope.scaling.original_context_length", 4096},
              {"deepseek2.leading_dense_block_count", 3},
              {"deepseek2.expert_count", 256},
              {"deepseek2.expert_used_count", 8},
              {"deepseek2.expert_shared_count", 1},
              {"deepseek2.expert_feed_forward_length", 2048},
              {"deepseek2.expert_gating_func", 2},
              {"deepseek2.expert_group_count", 8},
              {"deepseek2.expert_group_used_count", 4}};
  g.numbers = {{"deepseek2.attention.layer_norm_rms_epsilon", 1e-6F},
               {"deepseek2.rope.freq_base", 10000},
               {"deepseek2.rope.scaling.factor", 40},
               {"deepseek2.rope.scaling.yarn_log_multiplier", 0.1F},
               {"deepseek2.expert_weights_scale", 2.5F}};
  g.flags = {{"deepseek2.expert_weights_norm", true}};
  const Json config = config_from(g, 129280, 7168);
  EXPECT_EQ(config.at("qk_nope_head_dim"), 128);
  EXPECT_EQ(config.at("n_group"), 8);
  EXPECT_EQ(config.at("topk_group"), 4);
  EXPECT_EQ(config.at("routed_scaling_factor"), 2.5);
  EXPECT_EQ(config.at("rope_parameters"), (Json{{"rope_theta", 10000.0},
                                                {"rope_type", "yarn"},
                                                {"factor", 40.0},
                                                {"mscale", 1.0},
                                                {"mscale_all_dim", 1.0},
                                                {"original_max_position_embeddings", 4096}}));
  const ModelSpec spec = read_spec(Config(config, "gguf"));
  EXPECT_FALSE(spec.decoder.layers[2].feed.experts.has_value());
  EXPECT_TRUE(spec.decoder.layers[3].feed.experts.has_value());
}

// Llama 3.1 8B: theta 500000, heads of 128, first context 8192, factor 8; and 3.2 with factor 32.
TEST(GgufConfig, Llama31AndLlama32FactorsAreRecognised) {
  for (const double factor : {8.0, 32.0}) {
    std::vector<float> factors;
    for (int i = 0; i < 64; ++i) {  // in float, as converters do
      const float wave = 2 * 3.14159265F * std::pow(500000.0F, static_cast<float>(i) / 64);
      const float smooth = (8192 / wave - 1) / 3;
      factors.push_back(wave < 2048   ? 1
                        : wave > 8192 ? static_cast<float>(factor)
                                      : 1 / ((1 - smooth) / static_cast<float>(factor) + smooth));
    }
    HandmadeGguf g = tiny_llama();
    g.wholes["llama.embedding_length"] = 256;
    g.wholes["llama.rope.dimension_count"] = 128;
    g.numbers["llama.rope.freq_base"] = 500000;
    g.tensors.clear();
    const TempFolder folder;
    const std::vector<StoredTensor> entries{{"token_embd.weight", "F16", {10, 256}, {}},
                                            {"rope_freqs.weight", "F32", {64}, std::as_bytes(std::span(factors))}};
    const Json config = config_of(Gguf::open(g.write(folder)), entries);
    EXPECT_EQ(config.at("rope_parameters"), (Json{{"rope_theta", 500000.0},
                                                  {"rope_type", "llama3"},
                                                  {"factor", factor},
                                                  {"low_freq_factor", 1.0},
                                                  {"high_freq_factor", 4.0},
                                                  {"original_max_position_embeddings", 8192}}));
    EXPECT_EQ(config.at("dtype"), "float16");
  }
}

}  // namespace
}  // namespace qkv::test

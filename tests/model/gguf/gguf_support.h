// Helpers of GGUF tests: weights as bytes, and a tiny Llama as GGUF that a test can modify.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/temp_folder.h"
#include "io/files.h"
#include "io/gguf_write.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv::test {

inline std::string bytes_of(const Param& weight) {
  const Tensor master = weight.master();
  std::string bytes(static_cast<size_t>(master.count() * size_of(master.dtype())), '\0');
  master.device().download(bytes.data(), master.data(), static_cast<int64_t>(bytes.size()));
  return bytes;
}

inline std::vector<float> floats_of(const Param& weight) {
  EXPECT_EQ(weight.format().dtype, DType::f32) << weight.name();
  const std::string bytes = bytes_of(weight);
  return numbers_of<float>(std::as_bytes(std::span(bytes)));
}

// Every weight of one model against the other's, bit by bit, but for those `apart` names.
inline void expect_same_weights(const Weights& a, const Weights& b, const std::set<std::string>& apart = {}) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, weight] : a) {
    const Param* other = b.find(name);
    ASSERT_NE(other, nullptr) << name;
    ASSERT_EQ(weight.shape(), other->shape()) << name;
    ASSERT_EQ(weight.format().dtype, other->format().dtype) << name;
    if (!apart.contains(name)) {
      EXPECT_TRUE(bytes_of(weight) == bytes_of(*other)) << name << " differs";
    }
  }
}

// Keys and tensors of a GGUF, for tests that take some away or change them.
struct HandmadeGguf {
  std::map<std::string, std::string> texts;
  std::map<std::string, uint32_t> wholes;
  std::map<std::string, float> numbers;
  std::map<std::string, std::vector<int64_t>> tensors;  // all F32, of zeros or ones
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, bool> flags;

  std::filesystem::path write(const TempFolder& folder) const {
    GgufMetadata metadata;
    for (const auto& [key, value] : texts) metadata.add_text(key, value);
    for (const auto& [key, value] : wholes) metadata.add_u32(key, value);
    for (const auto& [key, value] : numbers) metadata.add_f32(key, value);
    for (const auto& [key, value] : lists) metadata.add_texts(key, value);
    for (const auto& [key, value] : flags) metadata.add_flag(key, value);
    std::vector<OutgoingTensor> outgoing;
    for (const auto& [name, shape] : tensors) {
      int64_t count = 1;
      for (const int64_t d : shape) count *= d;
      std::vector<float> numbers_of_it(static_cast<size_t>(count), 1.0F);
      if (const auto at = values.find(name); at != values.end()) numbers_of_it = at->second;
      outgoing.push_back(
          {name, "F32", shape, [numbers_of_it](ByteSink sink) { sink(std::as_bytes(std::span(numbers_of_it))); }});
    }
    const std::filesystem::path path = folder.path() / "handmade.gguf";
    write_gguf(path, metadata, outgoing);
    return path;
  }
};

inline HandmadeGguf tiny_llama() {
  HandmadeGguf g;
  g.texts = {{"general.architecture", "llama"}, {"tokenizer.ggml.model", "none"}};
  g.wholes = {{"llama.context_length", 32},      {"llama.embedding_length", 8},
              {"llama.block_count", 1},          {"llama.feed_forward_length", 16},
              {"llama.attention.head_count", 2}, {"llama.attention.head_count_kv", 1},
              {"llama.rope.dimension_count", 4}, {"tokenizer.ggml.bos_token_id", 1}};
  g.numbers = {{"llama.attention.layer_norm_rms_epsilon", 1e-5F}, {"llama.rope.freq_base", 10000.0F}};
  g.tensors = {
      {"token_embd.weight", {10, 8}},     {"output.weight", {10, 8}},       {"output_norm.weight", {8}},
      {"blk.0.attn_norm.weight", {8}},    {"blk.0.ffn_norm.weight", {8}},   {"blk.0.attn_q.weight", {8, 8}},
      {"blk.0.attn_k.weight", {4, 8}},    {"blk.0.attn_v.weight", {4, 8}},  {"blk.0.attn_output.weight", {8, 8}},
      {"blk.0.ffn_gate.weight", {16, 8}}, {"blk.0.ffn_up.weight", {16, 8}}, {"blk.0.ffn_down.weight", {8, 16}}};
  return g;
}

}  // namespace qkv::test

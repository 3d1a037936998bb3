// GGUF models whose products read the blocks of the file.
#include <algorithm>

#include "io/gguf.h"
#include "model/checkpoint/convert.h"
#include "model/quantized/quantize_support.h"

namespace qkv::test {
namespace quantized_gguf_test {

namespace fs = std::filesystem;

bool lies_in(const Param& weight, const StoredTensor& tensor) {
  const std::byte* at = weight.master().data();
  return at >= tensor.bytes.data() && at < tensor.bytes.data() + tensor.bytes.size();
}

class TinyBlocks : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Types, TinyBlocks,
                         testing::Values("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                                         "Q6_K"),
                         [](const auto& i) { return i.param; });

TEST_P(TinyBlocks, StayAsTheFileHasThem) {
  QKV_NEED_SHARED(folder, "gguf");
  const Checkpoint checkpoint = Checkpoint::open(folder / ("tiny-" + GetParam() + ".gguf"));
  const std::unique_ptr<Model> kept = checkpoint.model(),
                               decoded = checkpoint.model(cpu_device(), BlockWeights::decoded);
  for (const WeightSpec& weight : weight_list(checkpoint.spec)) {
    EXPECT_EQ(kept->weights().at(weight.name).format().plain(), weight.shape.rank() < 2) << weight.name;
  }
  EXPECT_GT(expect_same_numbers(kept->weights(), decoded->weights()), 14);
  // Rows in the right order are used in place; rotary pairs need the same blocks in another order.
  EXPECT_TRUE(lies_in(kept->weights().at("layers.1.mlp.down"), *checkpoint.file->find("blk.1.ffn_down.weight")));
  EXPECT_TRUE(lies_in(kept->weights().at("embed"), *checkpoint.file->find("token_embd.weight")));
  EXPECT_FALSE(lies_in(kept->weights().at("layers.1.attn.q"), *checkpoint.file->find("blk.1.attn_q.weight")));

  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    const double bf16 = precision.compute == DType::bf16 ? 5e-4 : 0;
    const std::unique_ptr<Model> fresh = checkpoint.model(cpu_device(), BlockWeights::decoded);
    const double error = nmse(logits_of(*kept, {.precision = precision}), logits_of(*fresh, {.precision = precision}));
    EXPECT_LE(error, activation_bound(checkpoint.spec) + bf16);
    EXPECT_GT(error, 1e-7) << "activations were not rounded: the blocks were not used";
  }
  expect_rows_stand_alone(*kept);
}

struct Family {
  const char* name;
  int in_blocks;  // weights whose rows are whole blocks
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

class FamilyBlocks : public testing::TestWithParam<Family> {};
INSTANTIATE_TEST_SUITE_P(Families, FamilyBlocks,
                         testing::Values(Family{"llama", 14}, Family{"mixtral", 14}, Family{"gpt2", 13},
                                         Family{"phi3", 14}, Family{"gemma3", 19}, Family{"gpt_oss", 14},
                                         Family{"deepseek_v3", 16}, Family{"t5", 33}),
                         [](const auto& i) { return i.param.name; });

TEST_P(FamilyBlocks, ComputeWhatTheirNumbersDo) {
  const TempFolder temp;
  const fs::path path = temp.path() / "m.gguf";
  convert_model(golden(GetParam().name), path, {.dtype = "Q8_0"});
  const Checkpoint checkpoint = Checkpoint::open(path);
  const std::unique_ptr<Model> kept = checkpoint.model(),
                               decoded = checkpoint.model(cpu_device(), BlockWeights::decoded);
  EXPECT_EQ(expect_same_numbers(kept->weights(), decoded->weights()), GetParam().in_blocks);
  for (const auto& [name, weight] : kept->weights()) {
    EXPECT_TRUE(weight.format().plain() || name.find("router") == std::string::npos) << name;
  }
  EXPECT_LE(nmse(logits_of(*kept), logits_of(*decoded)), activation_bound(checkpoint.spec));
  expect_rows_stand_alone(*kept);
}

TEST(ExpertBlocks, FromOneTensorEachAreCopiedInOrder) {
  const TempFolder temp;
  convert_model(golden("mixtral"), temp.path() / "m.gguf", {.dtype = "Q8_0"});
  const Checkpoint whole = Checkpoint::open(temp.path() / "m.gguf");
  const std::string weight = "layers.0.mlp.experts.gate";
  const StoredTensor& stacked = *whole.file->find("blk.0.ffn_gate_exps.weight");
  const Weights stacked_weights = whole.weights(cpu_device(), BlockWeights::kept);
  EXPECT_TRUE(lies_in(stacked_weights.at(weight), stacked));

  const auto experts = static_cast<size_t>(stacked.shape[0]);
  std::vector<OutgoingTensor> tensors;
  for (size_t e = experts; e-- > 0;) {
    const auto bytes = stacked.bytes.subspan(e * stacked.bytes.size() / experts, stacked.bytes.size() / experts);
    tensors.push_back({"e" + std::to_string(e), "Q8_0", {stacked.shape[1], stacked.shape[2]}, [bytes](ByteSink sink) {
                         sink(bytes);
                       }});
  }
  write_gguf(temp.path() / "apart.gguf", {}, tensors);
  const auto names = std::make_shared<TensorNames>(whole.spec);
  names->experts("e", "", weight);
  const Checkpoint apart{.config = {},
                         .spec = whole.spec,
                         .file = std::make_shared<TensorFileOf<Gguf>>(Gguf::open(temp.path() / "apart.gguf")),
                         .names = names};
  const Weights copied = apart.weights(cpu_device(), BlockWeights::kept);
  EXPECT_EQ(copied.at(weight).format(), Format(Block::q8_0));
  EXPECT_EQ(numbers_in(copied.at(weight)), numbers_in(stacked_weights.at(weight)));
}

}  // namespace quantized_gguf_test
}  // namespace qkv::test

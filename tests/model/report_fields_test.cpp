// Numbers of a model's reports, and weights made of parts, where the usual models would not show a mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/temp_folder.h"
#include "io/floats.h"
#include "io/safetensors_folder.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "model/describe/spec_difference.h"
#include "model/describe/summary.h"
#include "model/initialise.h"
#include "model/quantized/quantized_model.h"
#include "support/pass.h"

namespace qkv {
namespace report_fields_test {

namespace fs = std::filesystem;

// A window that is longer than the context keeps no more than the context.
TEST(Summary, NoWindowKeepsMoreThanTheContext) {
  ModelSpec spec = Checkpoint::open(test::golden("gemma2")).spec;
  int64_t all = 0;
  for (LayerSpec& layer : spec.decoder.layers) {
    if (layer.attention.window > 0) layer.attention.window = 3 * spec.context;
    all += 2 * layer.attention.kv_heads * layer.attention.width * spec.context;
  }
  EXPECT_EQ(summarise(spec).cache.at_context, all);
}

// Two scalings that agree up to the original context differ behind it.
TEST(SpecDifference, LooksBeyondTheOriginalContext) {
  const ModelSpec one = Checkpoint::open(test::golden("phi3_longrope")).spec;
  EXPECT_EQ(difference(one, one), "");
  ModelSpec other = one;
  for (LayerSpec& layer : other.decoder.layers) layer.attention.rope->scaling.long_factors[0] *= 1.5;
  EXPECT_EQ(difference(one, other), "decoder layer 0 rope scaling differs");
  other = one;
  for (LayerSpec& layer : other.decoder.layers) layer.attention.rope->scaling.short_factors[0] *= 1.5;
  EXPECT_EQ(difference(one, other), "decoder layer 0 rope scaling differs");
}

// Weights are drawn in pieces of 4M numbers: each has numbers of its own.
TEST(Initialise, LargeWeightsDoNotRepeatThemselves) {
  constexpr int64_t kPiece = int64_t{1} << 22, kWidth = 64, kWords = 66'000;
  const Json config{{"model_type", "llama"},       {"vocab_size", kWords},   {"hidden_size", kWidth},
                    {"intermediate_size", 32},     {"num_hidden_layers", 1}, {"num_attention_heads", 2},
                    {"tie_word_embeddings", true}, {"rms_norm_eps", 1e-5}};
  ASSERT_GT(kWords * kWidth, kPiece + 100);
  const TempFolder folder;
  ThreadPool pool(2);
  write_new_model(folder.path() / "m", config, {.seed = 5, .dtype = "BF16"}, pool);
  const SafetensorsFolder file = SafetensorsFolder::open(folder.path() / "m");
  const StoredTensor& embed = file.at("model.embed_tokens.weight");
  const std::vector<WeightSpec> weights = weight_list(Checkpoint::open(folder.path() / "m").spec);
  const auto spec = std::ranges::find(weights, "embed", &WeightSpec::name);
  ASSERT_NE(spec, weights.end());
  for (const int64_t first : {int64_t{0}, kPiece - 8, kPiece, kWords * kWidth - 16}) {
    std::vector<float> drawn(16);
    initial_numbers(*spec, 5, first, drawn);
    std::vector<std::byte> wanted(32);
    encode_floats("BF16", drawn, wanted);
    EXPECT_TRUE(std::ranges::equal(embed.bytes.subspan(static_cast<size_t>(2 * first), 32), wanted)) << first;
  }
}

// The errors of a report are those of the weights that were written.
TEST(QuantizeReport, ErrorsAreTheMeanAndTheWorstOfTheWeights) {
  const TempFolder folder;
  const Engine engine(kernels::best_table(), {.threads = 1});
  const Checkpoint source = Checkpoint::open(test::golden("gemma3"));
  const Format to(Block::q4, 32);
  const QuantizeReport report = quantize_model(source, folder.path() / "q", engine, {.to = to});
  const Weights before = source.weights(cpu_device(), BlockWeights::decoded),
                after = Checkpoint::open(folder.path() / "q").weights(cpu_device(), BlockWeights::decoded);
  std::map<Part, std::vector<double>> errors;
  for (const WeightSpec& weight : weight_list(source.spec)) {
    if (!quantized_format(weight, to)) continue;
    const test::Numbers was = test::to_host(before.at(weight.name).master()),
                        is = test::to_host(after.at(weight.name).master());
    errors[weight.part].push_back(std::sqrt(test::nmse(is, was)));
  }
  size_t most = 0;
  ASSERT_EQ(report.kinds.size(), errors.size());
  for (const QuantizeReport::Kind& kind : report.kinds) {
    const std::vector<double>& own = errors.at(kind.part);
    double sum = 0;
    for (const double error : own) sum += error;
    EXPECT_EQ(kind.weights, std::ssize(own));
    EXPECT_NEAR(kind.mean, sum / static_cast<double>(own.size()), 1e-6) << name_of(kind.part);
    EXPECT_NEAR(kind.worst, *std::ranges::max_element(own), 1e-6) << name_of(kind.part);
    most = std::max(most, own.size());
  }
  EXPECT_GT(most, 2U) << "a mean of more than two";
}

// One expert of a layer is stored in bf16, the others in f32: what holds them all has f32, whichever comes last.
TEST(CheckpointWeights, PartsOfSeveralTypesLoseNothing) {
  for (const char* expert : {".0.", ".3."}) {
    const TempFolder folder;
    fs::copy(test::golden("mixtral"), folder.path() / "m");
    fs::remove(folder.path() / "m" / "model.safetensors");
    const SafetensorsFolder file = SafetensorsFolder::open(test::golden("mixtral"));
    std::vector<OutgoingTensor> tensors;
    int halved = 0;
    for (const StoredTensor& entry : file.entries()) {
      const bool half =
          entry.name.find(std::string("layers.0.") + "block_sparse_moe.experts" + expert) != std::string::npos;
      if (!half) {
        tensors.push_back(outgoing(entry));
        continue;
      }
      ++halved;
      ASSERT_EQ(entry.dtype, "F32");
      std::vector<float> values(entry.bytes.size() / sizeof(float));
      decode_floats("F32", entry.bytes, values);
      std::vector<std::byte> bytes(2 * values.size());
      encode_floats("BF16", values, bytes);
      tensors.push_back({entry.name, "BF16", entry.shape, [bytes](ByteSink sink) { sink(bytes); }});
    }
    EXPECT_EQ(halved, 3);
    write_safetensors(folder.path() / "m" / "model.safetensors", tensors, {});
    const Weights right = Checkpoint::open(test::golden("mixtral")).weights(cpu_device()),
                  mixed = Checkpoint::open(folder.path() / "m").weights(cpu_device());
    const Param& weight = mixed.at("layers.0.mlp.experts.up");
    EXPECT_EQ(weight.format(), Format(DType::f32)) << "expert " << expert;
    const test::Numbers was = test::to_host(right.at("layers.0.mlp.experts.up").master()),
                        is = test::to_host(weight.master());
    const size_t each = was.size() / static_cast<size_t>(weight.shape()[0]);
    for (size_t e = 0; e < static_cast<size_t>(weight.shape()[0]); ++e) {
      const bool same = std::equal(was.begin() + static_cast<ptrdiff_t>(e * each),
                                   was.begin() + static_cast<ptrdiff_t>((e + 1) * each),
                                   is.begin() + static_cast<ptrdiff_t>(e * each));
      EXPECT_EQ(same, std::to_string(e) != std::string(1, expert[1])) << "expert " << e << ", in bf16 " << expert;
    }
  }
}

}  // namespace report_fields_test
}  // namespace qkv

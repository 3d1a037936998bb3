// A tiny Llama that llama.cpp wrote in every type: loaded weights equal its dequantised ones, and the model runs.
#include <algorithm>
#include <cmath>

#include "io/safetensors.h"
#include "kernels/tables.h"
#include "model/checkpoint/convert.h"
#include "model/gguf/gguf_support.h"
#include "support/pass.h"

namespace qkv::test {
namespace gguf_model_test {

namespace fs = std::filesystem;

class TinyGguf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Types, TinyGguf,
                         testing::Values("F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
                                         "Q5_K", "Q6_K"),
                         [](const auto& i) { return i.param; });

std::vector<float> as_floats(const Param& weight) {
  if (weight.format().dtype == DType::f32) return floats_of(weight);
  const Numbers numbers = to_host(weight.master());
  return {numbers.begin(), numbers.end()};
}

TEST_P(TinyGguf, WeightsAreWhatLlamaCppDequantised) {
  QKV_NEED_SHARED(folder, "gguf");
  const fs::path path = folder / ("tiny-" + GetParam() + ".gguf");
  const Safetensors right = Safetensors::open(folder / ("tiny-" + GetParam() + ".safetensors"));
  const Weights weights = Checkpoint::open(path).weights(cpu_device());
  const auto expected = [&](const char* name) { return numbers_of<float>(right.at(name).bytes); };

  EXPECT_EQ(as_floats(weights.at("embed")), expected("token_embd.weight"));
  EXPECT_EQ(as_floats(weights.at("layers.1.mlp.down")), expected("blk.1.ffn_down.weight"));
  // In the file the two columns of a rotary pair are adjacent; in a weight they are half a head apart.
  const std::vector<float> stored = expected("blk.0.attn_q.weight"), loaded = as_floats(weights.at("layers.0.attn.q"));
  constexpr size_t kHeads = 4, kWidth = 64, kColumns = 256;
  ASSERT_EQ(stored.size(), loaded.size());
  for (size_t head = 0; head < kHeads; ++head) {
    for (size_t pair = 0; pair < kWidth / 2; ++pair) {
      for (size_t half = 0; half < 2; ++half) {
        const size_t in_file = head * kWidth + 2 * pair + half, in_weight = head * kWidth + half * kWidth / 2 + pair;
        for (size_t c = 0; c < kColumns; ++c) {
          ASSERT_EQ(loaded[in_weight * kColumns + c], stored[in_file * kColumns + c]) << in_file;
        }
      }
    }
  }
}

TEST_P(TinyGguf, CopiesAreTheSameFile) {
  QKV_NEED_SHARED(folder, "gguf");
  const TempFolder temp;
  const fs::path path = folder / ("tiny-" + GetParam() + ".gguf");
  convert_model(path, temp.path() / "copy.gguf", {});
  EXPECT_TRUE(contents(path) == contents(temp.path() / "copy.gguf"));
}

// Through a folder of float32 and back: every dequantised number survives.
TEST_P(TinyGguf, FolderHoldsTheSameNumbers) {
  QKV_NEED_SHARED(folder, "gguf");
  const TempFolder temp;
  const fs::path path = folder / ("tiny-" + GetParam() + ".gguf");
  convert_model(path, temp.path() / "folder", {.dtype = "F32"});
  const Weights a = Checkpoint::open(path).weights(cpu_device()),
                b = Checkpoint::open(temp.path() / "folder").weights(cpu_device());
  for (const auto& [name, weight] : a) EXPECT_EQ(as_floats(weight), as_floats(b.at(name))) << name;
}

Numbers logits_of(const fs::path& path) {
  const std::unique_ptr<Model> model = Checkpoint::open(path).model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  constexpr int32_t kLength = 16;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kLength; ++i) ids.push_back((i * 37 + 5) % 96);
  Tensor on_device = cx.make({kLength}, DType::i32);
  cx.exec.device->upload(on_device.data(), ids.data(), kLength * 4);
  const Rows rows =
      Rows::make(cx, {{.first_row = 0, .rows = kLength, .first_key = 0, .keys = kLength}}, kLength, kLength);
  return to_host(model->logits(cx, {.ids = on_device, .rows = &rows}));
}

// The error of a type's weights, relative to their size, as the error of the logits: a network of a few layers adds up
// a few such errors, so the logits' NMSE is within a few times the weights'.
TEST_P(TinyGguf, LogitsFollowTheFloat32File) {
  QKV_NEED_SHARED(folder, "gguf");
  const fs::path exact = folder / "tiny-f32.gguf", path = folder / ("tiny-" + GetParam() + ".gguf");
  const Weights a = Checkpoint::open(exact).weights(cpu_device()), b = Checkpoint::open(path).weights(cpu_device());
  double worst = 0;
  for (const auto& [name, weight] : a) {
    const Numbers right = to_host(weight.master()), got = to_host(b.at(name).master());
    worst = std::max(worst, nmse(got, right));
  }
  const Numbers right = logits_of(exact), got = logits_of(path);
  // 7 products in a row and the stream between them, on every layer: no more than 2 * 7 + 2 errors add up in power.
  EXPECT_LE(nmse(got, right), 16 * worst);
  EXPECT_GT(worst, 0);
  // Where the first choice leads by six times the usual error, it stays the first.
  const size_t vocabulary = 96, rows = right.size() / vocabulary;
  double power = 0;
  for (size_t i = 0; i < right.size(); ++i) power += (got[i] - right[i]) * (got[i] - right[i]);
  const double clear = 6 * std::sqrt(power / static_cast<double>(right.size()));
  size_t clear_rows = 0;
  for (size_t r = 0; r < rows; ++r) {
    const auto first = [&](const Numbers& x) { return x.begin() + static_cast<std::ptrdiff_t>(r * vocabulary); };
    const auto best = [&](const Numbers& x) {
      return std::max_element(first(x), first(x) + static_cast<std::ptrdiff_t>(vocabulary)) - first(x);
    };
    Numbers sorted(first(right), first(right) + static_cast<std::ptrdiff_t>(vocabulary));
    std::sort(sorted.rbegin(), sorted.rend());
    if (sorted[0] - sorted[1] <= clear) continue;
    ++clear_rows;
    EXPECT_EQ(best(got), best(right)) << "row " << r;
  }
  if (worst < 1e-4) {  // 8 bits and more
    EXPECT_GE(clear_rows, rows / 2);
  }
}

TEST(TinyGgufFile, NumbersInPlaceWhereTheyCanBe) {
  QKV_NEED_SHARED(folder, "gguf");
  const Checkpoint checkpoint = Checkpoint::open(folder / "tiny-BF16.gguf");
  EXPECT_EQ(checkpoint.spec.dtype, DType::bf16);
  const Weights weights = checkpoint.weights(cpu_device());
  const StoredTensor* stored = checkpoint.file->find("blk.0.attn_v.weight");
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(static_cast<const void*>(weights.at("layers.0.attn.v").master().data()),
            static_cast<const void*>(stored->bytes.data()));
  EXPECT_EQ(weights.at("layers.0.norm_attn").format().dtype, DType::f32);
}

TEST(RealModel, SurvivesGguf) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const TempFolder temp;
  convert_model(folder, temp.path() / "m.gguf", {});
  convert_model(temp.path() / "m.gguf", temp.path() / "back", {});
  expect_same_weights(Checkpoint::open(folder).weights(cpu_device()),
                      Checkpoint::open(temp.path() / "back").weights(cpu_device()));
}

TEST(TinyGgufFile, AnotherTypeIsWhatTheEncoderGives) {
  QKV_NEED_SHARED(folder, "gguf");
  const TempFolder temp;
  // llama.cpp's own Q8_0, F16 and BF16 files of the same weights, byte for byte in every tensor.
  for (const std::string type : {"Q8_0", "F16", "BF16"}) {
    const fs::path made = temp.path() / (type + ".gguf");
    convert_model(folder / "tiny-f32.gguf", made, {.dtype = type});
    const Gguf ours = Gguf::open(made), theirs = Gguf::open(folder / ("tiny-" + type + ".gguf"));
    for (const StoredTensor& entry : theirs.entries()) {
      ASSERT_EQ(ours.at(entry.name).dtype, entry.dtype) << entry.name;
      EXPECT_TRUE(text_of(ours.at(entry.name).bytes) == text_of(entry.bytes)) << type << " " << entry.name;
    }
    EXPECT_EQ(ours.integer("general.file_type"), theirs.integer("general.file_type"));
  }
}

}  // namespace gguf_model_test
}  // namespace qkv::test

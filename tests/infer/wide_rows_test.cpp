// A model whose widths fill tiles and packs, so that GPUs take their fast forms: a token's logits have the same bits whatever
// is beside it, however its text is cut into passes, and with up to 256 texts written at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "infer/runner.h"
#include "infer/whole_pass.h"
#include "support/fresh_model.h"

namespace qkv {
namespace wide_rows_test {

constexpr int64_t kWords = 320, kLength = 512;

Json wide_llama() {
  return {{"model_type", "llama"},    {"vocab_size", kWords},
          {"hidden_size", 256},       {"intermediate_size", 576},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"max_position_embeddings", kLength},
          {"rms_norm_eps", 1e-6},     {"tie_word_embeddings", false}};
}

class WideRows : public testing::TestWithParam<const Kernels*> {
 protected:
  Engine engine_{*GetParam(), {.threads = 2}};
  std::unique_ptr<Model> model_ = test::fresh_model(wide_llama(), engine_.device());

  std::vector<float> whole(Precision precision, const std::vector<int32_t>& ids) const {
    return test::whole_pass(*model_, engine_, precision, ids);
  }
};

std::vector<int32_t> text(uint32_t seed, int64_t length = kLength) {
  return test::some_ids(length, seed, kWords);
}

std::span<const float> rows_of(const std::vector<float>& logits, int64_t first, int64_t count) {
  return std::span(logits).subspan(static_cast<size_t>(first * kWords), static_cast<size_t>(count * kWords));
}

TEST_P(WideRows, InChunksOfAnySizeHaveTheBitsOfTheWholePass) {
  const std::vector<int32_t> ids = text(1);
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    const std::vector<float> right = whole(precision, ids);
    Runner runner(*model_, engine_, {.precision = precision, .cache = precision.compute, .positions = 2 * kLength});
    for (const int64_t chunk : {1, 2, 7, 16, 17, 64, 65}) {
      const Runner::Sequence sequence = runner.start();
      int64_t wrong = 0;
      for (int64_t at = 0; at < kLength; at += chunk) {
        const int64_t count = std::min(chunk, kLength - at);
        const Runner::Part part{.sequence = sequence,
                                .ids = std::span(ids).subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                                .logits = count};
        wrong += std::ranges::equal(runner.pass({&part, 1}), rows_of(right, at, count)) ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0) << name_of(precision.compute) << ", passes of " << chunk << " rows with other bits";
      runner.end(sequence);
    }
  }
}

TEST_P(WideRows, BesideSevenOtherTextsHaveTheBitsOfOneAlone) {
  std::vector<int32_t> ids;
  for (uint32_t n = 0; n < 8; ++n) std::ranges::copy(text(n), std::back_inserter(ids));
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    Arena arena(engine_.device());
    Context cx = engine_.context(arena, precision);
    const Rows rows = Rows::batch(cx, 8, kLength);
    const std::vector<float> together = host_floats(model_->logits(cx, {.ids = cx.upload(ids), .rows = &rows}));
    for (const uint32_t n : {0U, 3U, 7U}) {
      EXPECT_TRUE(std::ranges::equal(whole(precision, text(n)), rows_of(together, kLength * n, kLength)))
          << name_of(precision.compute) << ", text " << n << " of 4096 rows";
    }
  }
}

TEST_P(WideRows, OfUpTo256TextsAtOnceHaveTheBitsOfOneAlone) {
  constexpr int64_t kSteps = 3;
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    Runner runner(*model_, engine_, {.precision = precision, .cache = precision.compute, .positions = 256 * 32});
    for (const int64_t at_once : {1, 2, 65, 100, 256}) {
      std::vector<std::vector<int32_t>> texts;
      std::vector<Runner::Part> parts;
      for (uint32_t n = 0; n < at_once; ++n) {
        texts.push_back(text(n, 1 + n % 20 + kSteps));
        const Runner::Part prompt{.sequence = runner.start(), .ids = std::span(texts[n]).first(1 + n % 20)};
        runner.pass({&prompt, 1});
        parts.push_back({.sequence = prompt.sequence, .ids = {}});
      }
      int64_t wrong = 0;
      for (int64_t step = 0; step < kSteps; ++step) {
        for (uint32_t n = 0; n < at_once; ++n) {
          parts[n].ids = std::span(texts[n]).subspan(1 + n % 20 + static_cast<size_t>(step), 1);
        }
        const std::span<const float> logits = runner.pass(parts);
        for (const uint32_t n : {0U, static_cast<uint32_t>(at_once) / 2, static_cast<uint32_t>(at_once) - 1}) {
          const int64_t position = std::ssize(texts[n]) - kSteps + step;
          const std::vector<float> right = whole(precision, texts[n]);
          wrong += std::ranges::equal(logits.subspan(n * kWords, kWords), rows_of(right, position, 1)) ? 0 : 1;
        }
      }
      EXPECT_EQ(wrong, 0) << name_of(precision.compute) << ", " << at_once << " texts at once";
      for (const Runner::Part& part : parts) runner.end(part.sequence);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OnDevices, WideRows, testing::ValuesIn(test::fastest_tables()),
                         [](const auto& table) { return std::string(table.param->name); });

}  // namespace wide_rows_test
}  // namespace qkv

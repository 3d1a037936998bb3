// Helpers of tests of quantised models: passes of any kind of model, and its weights as plain numbers.
#pragma once

#include "model/gguf/gguf_support.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {

struct PassOptions {
  int64_t length = 12;
  int threads = 1;
  Precision precision = Precision::f32();
};

// Logits of a text that depends on the vocabulary alone. An encoder-decoder reads it and writes it again.
inline Numbers logits_of(const Model& model, const PassOptions& options = {}) {
  const Engine engine(kernels::best_table(), {.threads = options.threads});
  Arena arena(engine.device());
  Context cx = engine.context(arena, options.precision);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < options.length; ++i) {
    ids.push_back(static_cast<int32_t>((i * 37 + 5) % model.spec().vocabulary));
  }
  const Rows rows = Rows::batch(cx, 1, options.length);
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  if (model.spec().has_source()) {
    input.source_ids = input.ids;
    input.source_rows = &rows;
  }
  return to_host(model.logits(cx, input));
}

// Rounding a block's activations to bytes changes them by at most half a step of max / 127, so by a power of
// c^2 / (12 127^2) of their own where max is c times their root mean square. Normal numbers in blocks of 32 to 256 have
// c of 2 to 3.5; these models' have up to 6. The errors of the products in a row add up: 4 a layer, and the head.
inline double activation_bound(const ModelSpec& spec) {
  const auto layers = static_cast<double>(spec.encoder.layers.size() + spec.decoder.layers.size());
  return 36.0 / (12 * 127 * 127) * (4 * layers + 1);
}

// What a weight holds, whatever it is stored as.
inline Numbers numbers_in(const Param& weight) {
  if (weight.format().plain()) return to_host(weight.master());
  Pass pass;
  return to_host(ops::dequantize(pass.cx, weight, DType::f32));
}

// Every form of a weight holds the same numbers. Returns how many weights are in blocks.
inline int expect_same_numbers(const Weights& kept, const Weights& decoded) {
  EXPECT_EQ(kept.size(), decoded.size());
  int in_blocks = 0;
  for (const auto& [name, weight] : kept) {
    EXPECT_TRUE(decoded.at(name).format().plain()) << name;
    EXPECT_EQ(numbers_in(weight), numbers_in(decoded.at(name))) << name << " as " << weight.format();
    in_blocks += weight.format().plain() ? 0 : 1;
  }
  return in_blocks;
}

// An output's bits depend neither on the rows after it nor on the threads.
inline void expect_rows_stand_alone(const Model& model) {
  const auto width = static_cast<size_t>(model.spec().vocabulary);
  const Numbers whole = logits_of(model, {.length = 40});
  EXPECT_EQ(logits_of(model, {.length = 40, .threads = 3}), whole);
  if (model.spec().kind != ModelSpec::Kind::decoder_only) return;  // others read all of the text
  for (const int64_t length : {1, 2, 3, 4, 5, 17, 33}) {
    const Numbers some = logits_of(model, {.length = length});
    EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin())) << length << " rows of " << whole.size() / width;
  }
}

}  // namespace qkv::test

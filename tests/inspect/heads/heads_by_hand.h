// A model whose heads are set by hand, so what they do is known.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/families/family.h"
#include "model/model.h"
#include "model/weight_list.h"
#include "support/pass.h"

namespace qkv::test {

// A two-layer GPT-2 whose residual stream is [token | position | previous token | output]. L0H0 is a previous-token
// head: it copies the token before into the third part. L1H0 is an induction head: it attends where the third part
// equals its own token, that is to what followed an earlier copy, and writes the token there to the output part, which
// the logits read. The other heads attend uniformly.
//
// Kind::glances: L1H0 keeps 86 % of its attention on its own position; of the rest, what induction looks at has the
// most. Kind::idle: L1H0 looks as an induction head does but writes nothing, and L1H1 is the one that writes.
class HeadsByHand {
 public:
  static constexpr int64_t kTokens = 24, kPositions = 64, kHead = 128, kHeads = 2, kWidth = kHead * kHeads;

  enum class Kind { induction, glances, idle };

  explicit HeadsByHand(Kind kind = Kind::induction) : kind_(kind) {
    Json config = parse_json(read_file(test::golden("gpt2") / "config.json", 1 << 20), "config.json");
    config["vocab_size"] = kTokens;
    config["n_embd"] = kWidth;
    config["n_head"] = kHeads;
    config["n_positions"] = kPositions;
    config["n_inner"] = 4;
    config["eos_token_id"] = nullptr;
    config["bos_token_id"] = 0;
    config["tie_word_embeddings"] = false;
    spec_ = read_spec(Config(config, "config.json"));
    Weights weights;
    for (const WeightSpec& one : weight_list(spec_)) {
      Param& param = weights.add(Param(one.name, cpu_device(), Format(DType::f32), one.shape));
      const bool gain = one.part == Part::norm && !one.name.ends_with(".bias");
      std::vector<float> values(static_cast<size_t>(one.shape.count()), gain ? 1.0F : 0.0F);
      fill(one.name, values);
      std::memcpy(param.master().data(), values.data(), values.size() * sizeof(float));
    }
    model = Model::make(spec_, std::move(weights));
  }

  std::unique_ptr<Model> model;

 private:
  static constexpr int64_t kToken = 0, kPosition = kTokens, kBefore = kTokens + kPositions;
  static constexpr int64_t kOutput = kBefore + kTokens;  // what the logits read
  static constexpr float kSharp = 4;
  static constexpr float kStay = 7.9F, kGlance = 2.14F;  // both parts of the stream have sizes of their own

  void fill(const std::string& name, std::vector<float>& w) const {
    const auto put = [&](int64_t row, int64_t column, float value) {
      w[static_cast<size_t>(row * kWidth + column)] = value;
    };
    if (name == "embed") {
      for (int64_t t = 0; t < kTokens; ++t) put(t, kToken + t, 1);
    } else if (name == "positions") {
      for (int64_t p = 0; p < kPositions; ++p) put(p, kPosition + p, 1);
    } else if (name == "layers.0.attn.q") {  // query: the previous position
      for (int64_t p = 1; p < kPositions; ++p) put(p - 1, kPosition + p, kSharp);
    } else if (name == "layers.0.attn.k") {
      for (int64_t p = 0; p < kPositions; ++p) put(p, kPosition + p, kSharp);
    } else if (name == "layers.0.attn.v") {
      for (int64_t t = 0; t < kTokens; ++t) put(t, kToken + t, 1);
    } else if (name == "layers.0.attn.o") {
      for (int64_t t = 0; t < kTokens; ++t) put(kBefore + t, t, 1);
    } else if (name == "layers.1.attn.q") {  // query: keys whose previous token is its own
      const bool glances = kind_ == Kind::glances;
      for (int64_t t = 0; t < kTokens; ++t) {
        put(t, kToken + t, glances ? kGlance : kSharp);
        if (kind_ == Kind::idle) put(kHead + t, kToken + t, kSharp);
      }
      for (int64_t p = 0; glances && p < kPositions; ++p) put(kTokens + p, kPosition + p, kStay);
    } else if (name == "layers.1.attn.k") {
      const bool glances = kind_ == Kind::glances;
      for (int64_t t = 0; t < kTokens; ++t) {
        put(t, kBefore + t, glances ? kGlance : kSharp);
        if (kind_ == Kind::idle) put(kHead + t, kBefore + t, kSharp);
      }
      for (int64_t p = 0; glances && p < kPositions; ++p) put(kTokens + p, kPosition + p, kStay);
    } else if (name == "layers.1.attn.v") {
      for (int64_t t = 0; t < kTokens; ++t) {
        put(t, kToken + t, 1);
        if (kind_ == Kind::idle) put(kHead + t, kToken + t, 1);
      }
    } else if (name == "layers.1.attn.o") {
      for (int64_t t = 0; t < kTokens; ++t) put(kOutput + t, kind_ == Kind::idle ? kHead + t : t, 1);
    } else if (name == "head") {
      for (int64_t t = 0; t < kTokens; ++t) put(t, kOutput + t, 1);
    }
  }

  Kind kind_;
  ModelSpec spec_;
};

}  // namespace qkv::test

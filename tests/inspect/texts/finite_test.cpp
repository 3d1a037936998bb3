// A model with a NaN or an infinite weight has no findings: everything that reads it refuses, and names the weight.
#include "inspect/texts/finite.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "base/expect_error.h"
#include "inspect/cut/importance.h"
#include "inspect/heads/expert_use.h"
#include "inspect/heads/head_roles.h"
#include "inspect/heads/twins.h"
#include "inspect/lens/lens.h"
#include "inspect/lens/tuned_lens.h"
#include "inspect/look/alignment.h"
#include "inspect/look/attribution.h"
#include "inspect/look/looking.h"
#include "inspect/taps/recorder.h"
#include "inspect/taps/tap_price.h"
#include "inspect/tiny.h"
#include "inspect/watch/watcher.h"
#include "kernels/tables.h"

namespace qkv {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::unique_ptr<Model> opened(const std::string& family) {
  auto model = Checkpoint::open(test::golden(family)).model();
  for (auto& [name, weight] : model->weights()) weight.trainable = false;
  model->origin = "the/" + family;
  return model;
}

// One number of a weight, in a row that the texts use; all of those that only some rows use.
void plant(Model& model, const Engine& engine, const std::string& name, float value) {
  test::change_weight(model, engine, name, [&](std::vector<float>& values) {
    const bool some = name.find("experts") != std::string::npos || name.find("relative") != std::string::npos;
    const bool rows = name.ends_with("embed") || name.ends_with("positions") || name == "types";
    const auto width = static_cast<size_t>(model.spec().width);
    if (some || rows) {
      for (size_t i = 0; i < values.size(); i += rows ? width : 1) values[i] = value;
    } else {
      values[values.size() / 2] = value;
    }
  });
}

class FiniteOf : public testing::TestWithParam<const char*> {};

TEST_P(FiniteOf, every_weight_is_named_when_it_is_not) {
  for (const Kernels* table : {&kernels::ref::table(), &kernels::best_table()}) {
    const Engine engine(*table, {.threads = 1});
    const auto whole = opened(GetParam());
    const std::vector<TokenText> texts = test::tiny_texts(whole->spec(), {9, 14});
    Recorder nothing({});
    Reader(*whole, engine, {}).look(texts, nothing);
    for (const auto& [name, weight] : whole->weights()) {
      for (const float value : {kNotANumber, kInfinite}) {
        const auto model = opened(GetParam());
        plant(*model, engine, name, value);
        SCOPED_TRACE(name + (value == kInfinite ? " infinite" : " NaN"));
        const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
        const bool undone = has("router.correction") || has("mlp.up") || has("mlp.gate") || has("experts.up") ||
                            has("experts.gate");  // infinity can be made finite after these: a ReLU, a clamp, a choice
        if (value == kInfinite && undone) continue;
        expect_error([&] { Reader(*model, engine, {}).look(texts, nothing); },
                     {"the/" + std::string(GetParam()), "weight '" + name + "'", value == kInfinite ? "inf" : "nan"});
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(families, FiniteOf,
                         testing::Values("gpt2", "llama", "gpt_oss", "mixtral", "deepseek_v3", "bert", "t5", "marian"));

// Whatever an entry point reads, a NaN in one number of one matrix of one layer stops it.
TEST(Finite, every_entry_point_refuses) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto damaged = [&](const char* family) {
    auto model = opened(family);
    const bool pairs = model->spec().has_source();
    plant(*model, engine, pairs ? "dec.layers.1.cross.q" : "layers.1.attn.q", kNotANumber);
    return model;
  };
  const auto llama = damaged("llama"), t5 = damaged("t5"), mixtral = damaged("mixtral");
  const std::vector<TokenText> texts = test::tiny_texts(llama->spec(), {9, 14, 12, 11, 16});
  const std::vector<TokenText> pairs = test::tiny_texts(t5->spec(), {9});
  Reader reader(*llama, engine, {}), short_reader(*llama, engine, {.rows = 5}), experts(*mixtral, engine, {});
  Recorder nothing({});
  TunedLens tuned(*llama, engine);
  const Tokenizer tokenizer = Tokenizer::load(test::golden("tokenizers") / "unigram");
  TokenCounts counts(llama->spec().vocabulary, {});
  counts.add(1, 2);
  counts.finish();
  WatchData data{.texts = texts, .held_out = true, .counts = std::move(counts)};
  for (TokenText& text : data.texts) text.targets = text.ids;
  CutProbe cut(llama->spec(), {.heads = {{Stack::decoder, 1, 0}}, .ablation = Ablation::zero}, nullptr);
  const std::map<std::string, std::function<void()>> all{
      {"losses", [&] { reader.losses(texts); }},
      {"look", [&] { reader.look(texts, nothing); }},
      {"chunks", [&] { short_reader.look(texts, nothing); }},
      {"look_at", [&] { look_at(*llama, engine, texts[0], {}); }},
      {"lens", [&] { read_lens(reader, texts, nullptr); }},
      {"tuned lens", [&] { tuned.train(reader, texts, {}); }},
      {"roles", [&] { head_roles(reader, nullptr, texts, {}); }},
      {"twins", [&] { find_twins(reader, texts, {}); }},
      {"cut", [&] { effect_of(reader, texts, cut); }},
      {"importance", [&] { gradient_importance(reader, texts); }},
      {"each head", [&] { ablation_importance(reader, texts, Ablation::zero, nullptr); }},
      {"outputs", [&] { measure_outputs(reader, texts, Ablation::mean); }},
      {"attribute", [&] { Attributor(*llama, engine, Precision::f32(), texts[0], 3); }},
      {"align", [&] { align(*t5, engine, tokenizer, pairs[0]); }},
      {"price", [&] { tap_prices(*llama, engine, {.tokens = 8, .rounds = 1}); }},
      {"route", [&] { measure_routing(experts, texts, {.class_of = std::vector<int32_t>(96, 0), .classes = 1}); }},
      {"watch",
       [&] { Watcher(*llama, engine, std::move(data), {.steps = 9, .batch_tokens = 512, .length = 30}).take(0); }},
  };
  for (const auto& [name, call] : all) {
    SCOPED_TRACE(name);
    expect_error(call, {".q'", "nan", "1.attn.lse is nan"});
  }
}

// Row 95 of the embedding is not in the texts. Where the head is another matrix nobody reads it; where it is the same,
// it is a logit of every row.
TEST(Finite, an_embedding_that_is_not_used_is_not_missed) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  for (const char* family : {"llama", "gpt2"}) {
    const auto model = opened(family);
    test::change_weight(*model, engine, "embed", [](std::vector<float>& values) { values.back() = kNotANumber; });
    const TokenText text{.ids = {3, 4, 5}};
    Recorder nothing({});
    const auto read = [&] { Reader(*model, engine, {}).look({&text, 1}, nothing); };
    if (model->spec().head.tied) {
      expect_error(read, {"'embed'", "logit of token 95", "nan"});
    } else {
      read();
    }
  }
}

TEST(Finite, an_overflow_says_that_the_weights_are_finite) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = opened("llama");
  test::change_weight(*model, engine, "layers.1.mlp.down", [](std::vector<float>& values) {
    for (float& v : values) v = 3e38F;
  });
  const TokenText text{.ids = {3, 4, 5}};
  Recorder nothing({});
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    expect_error(
        [&] {
          Reader(*model, engine, {.precision = precision}).look({&text, 1}, nothing);
        },
        {"the/llama", "1.resid.post", "all weights are finite"});
  }
}

}  // namespace
}  // namespace qkv

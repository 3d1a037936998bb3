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
#include "support/guarded_device.h"

namespace qkv {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::unique_ptr<Model> opened(const std::string& family, Device& device = cpu_device()) {
  auto model = Checkpoint::open(test::golden(family)).model(device);
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

// Infinity can be made finite after these: a ReLU, a clamp, a choice.
bool can_undo_infinity(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return has("router.correction") || has("mlp.up") || has("mlp.gate") || has("experts.up") || has("experts.gate");
}

class FiniteOnDevices : public testing::TestWithParam<const char*> {};

TEST_P(FiniteOnDevices, every_weight_is_named_when_it_is_not) {
  std::vector<const Kernels*> tables = test::fastest_tables();
  tables.push_back(&kernels::ref::table());
  for (const Kernels* table : tables) {
    SCOPED_TRACE(table->name);
    const Engine engine(*table, {.threads = 1});
    const auto whole = opened(GetParam(), engine.device());
    const std::vector<TokenText> texts = test::tiny_texts(whole->spec(), {9, 14});
    Recorder nothing({});
    Reader(*whole, engine, {}).look(texts, nothing);
    for (const auto& [name, weight] : whole->weights()) {
      for (const float value : {kNotANumber, kInfinite}) {
        const auto model = opened(GetParam(), engine.device());
        plant(*model, engine, name, value);
        SCOPED_TRACE(name + (value == kInfinite ? " infinite" : " NaN"));
        if (value == kInfinite && can_undo_infinity(name)) continue;
        expect_error([&] { Reader(*model, engine, {}).look(texts, nothing); },
                     {"the/" + std::string(GetParam()), "weight '" + name + "'", value == kInfinite ? "inf" : "nan"});
      }
    }
  }
}

// Statistics of attention, as heads are read.
class Statistics : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override { ++begun; }
  void end() override { ++ended; }
  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::stats : Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override { ADD_FAILURE() << "nothing is to be visited"; }
  void visit_stats(Context&, const Tap&, const AttentionStats&) override { ++seen; }

  int begun = 0, seen = 0, ended = 0;
};

struct Read {
  std::string error;  // with its hint; empty: none
  int begun = 0, seen = 0, ended = 0;
};
Read read_statistics(const Model& model, const Engine& engine) {
  Statistics statistics;
  const std::vector<TokenText> texts = test::tiny_texts(model.spec(), {9, 14});
  const auto error = error_of([&] { Reader(model, engine, {}).look(texts, statistics); });
  return {error ? error->message() + " | " + error->hint() : "", statistics.begun, statistics.seen, statistics.ended};
}

// The checks of a pass on a device are looked at when it is over. If they found something it is run again, to say what
// the host says.
TEST_P(FiniteOnDevices, a_device_says_what_the_host_says) {
  const std::string family = GetParam();
  const auto clean =
      test::on_both([&](const Engine& engine) { return read_statistics(*opened(family, engine.device()), engine); });
  for (const Read& read : {clean.first, clean.second}) {
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(read.begun, 1) << "a pass without fault was run again";
    EXPECT_EQ(read.ended, 1);
    EXPECT_EQ(read.seen, clean.second.seen);
  }
  const auto whole = opened(family);
  const bool at_once = family == "gpt_oss";  // sinks
  for (const auto& [name, weight] : whole->weights()) {
    for (const float value : {kNotANumber, kInfinite}) {
      SCOPED_TRACE(name + (value == kInfinite ? " infinite" : " NaN"));
      const auto [device, host] = test::on_both([&](const Engine& engine) {
        const auto model = opened(family, engine.device());
        plant(*model, engine, name, value);
        return read_statistics(*model, engine);
      });
      EXPECT_EQ(device.error, host.error);
      EXPECT_EQ(device.ended, host.ended);
      EXPECT_EQ(host.begun, 1);
      if (value == kInfinite && can_undo_infinity(name)) continue;
      EXPECT_NE(device.error, "");
      const bool of_the_head =
          host.error.find("so the logit of token") != std::string::npos;  // looked at when it is over
      EXPECT_EQ(device.begun, at_once || of_the_head ? 1 : 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, FiniteOnDevices,
                         testing::Values("gpt2", "llama", "gpt_oss", "mixtral", "deepseek_v3", "bert", "t5", "marian"));

// Whatever an entry point reads, a NaN in one number of one matrix of one layer stops it.
void expect_refusals(const Engine& engine) {
  const auto damaged = [&](const char* family) {
    auto model = opened(family, engine.device());
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
TEST(RefusalsOnDevices, every_entry_point_refuses) {
  for (const Kernels* table : test::fastest_tables()) {
    SCOPED_TRACE(table->name);
    expect_refusals(Engine(*table, {.threads = 1}));
  }
}
TEST(Finite, every_entry_point_refuses_on_a_device) {
  const test::GuardedEngine guarded;
  expect_refusals(guarded.engine);
}

// Infinite keys that every query scores with -inf: as if there were none, and the stream stays finite.
TEST(Finite, keys_nobody_sees_are_not_missed_on_a_device) {
  const auto [device, host] = test::on_both([](const Engine& engine) {
    const auto model = opened("gpt2", engine.device());
    const auto first_to = [&](const char* name, float value) {
      test::change_weight(*model, engine, name, [&](std::vector<float>& values) { values[0] = value; });
    };
    first_to("layers.1.attn.q.bias", -1e4F);
    first_to("layers.1.attn.k.bias", kInfinite);
    const Read read = read_statistics(*model, engine);
    return std::pair{read.error, read.ended};
  });
  EXPECT_EQ(device, host);
  EXPECT_NE(device.first.find("1.attn.k is inf"), std::string::npos) << device.first;
}

// The head that is cut hides its NaN from the end of the stream; so does a stream that is replaced.
TEST(Finite, what_a_probe_takes_away_is_not_missed_on_a_device) {
  const auto [device, host] = test::on_both([](const Engine& engine) {
    const auto model = opened("llama", engine.device());
    test::change_weight(*model, engine, "layers.1.attn.q", [](std::vector<float>& values) { values[0] = kNotANumber; });
    CutProbe cut(model->spec(), {.heads = {{Stack::decoder, 1, 0}}, .ablation = Ablation::zero}, nullptr);
    const auto error = error_of([&] {
      Reader(*model, engine, {}).look(test::tiny_texts(model->spec(), {9, 14}), cut);
    });
    return error ? error->message() : "";
  });
  EXPECT_EQ(device, host);
  EXPECT_NE(device.find("1.attn.lse is nan"), std::string::npos) << device;
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

TEST(Finite, an_overflow_has_the_same_place_on_a_device) {
  const auto [device, host] = test::on_both([](const Engine& engine) {
    const auto model = opened("llama", engine.device());
    test::change_weight(*model, engine, "layers.1.mlp.down", [](std::vector<float>& values) {
      for (float& v : values) v = 3e38F;
    });
    const Read read = read_statistics(*model, engine);
    return std::pair{read.error, read.ended};
  });
  EXPECT_EQ(device, host);
  EXPECT_NE(device.first.find("1.resid.post is"), std::string::npos) << device.first;
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

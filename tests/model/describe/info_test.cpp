#include <gtest/gtest.h>

#include <sstream>

#include "base/display_width.h"
#include "base/expect_error.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "model/describe/model_report.h"
#include "model/describe/picture.h"
#include "model/families/presets.h"
#include "support/pass.h"

namespace qkv {
namespace {

ModelSpec golden_spec(const std::string& name) {
  return Checkpoint::open(test::golden(name)).spec;
}

std::vector<std::string> goldens() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden(""))) {
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename());
  }
  return names;
}

int64_t sum(const PartCounts& parts) {
  int64_t total = 0;
  for (const auto& [part, count] : parts) total += count;
  return total;
}

void expect_narrow(const std::string& text, const std::string& what) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 100) << what << ": " << line;
  }
}

TEST(Summary, CountsWhatTheFilesHold) {
  ASSERT_EQ(goldens().size(), 47U);
  for (const std::string& name : goldens()) {
    const Safetensors file = Safetensors::open(test::golden(name) / "model.safetensors");
    int64_t stored = 0;
    for (const StoredTensor& tensor : file.entries()) {
      int64_t count = 1;
      for (const int64_t d : tensor.shape) count *= d;
      stored += count;
    }
    const ModelSummary s = summarise(golden_spec(name));
    EXPECT_EQ(s.parameters, stored) << name;
    EXPECT_EQ(sum(s.parts), stored) << name;
    int64_t pieces = sum(s.outside);
    for (const LayerGroup& group : s.groups) {
      EXPECT_EQ(sum(group.parts), group.parameters);
      pieces += group.parameters * static_cast<int64_t>(group.layers.size());
    }
    EXPECT_EQ(pieces, stored) << name;
    EXPECT_GT(s.training.activations, 0) << name;
    EXPECT_EQ(s.active < s.parameters, s.has_experts()) << name;
  }
}

// The plan is what a real step takes, to the byte.
TEST(Summary, PlansWhatATrainingStepTakes) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("qwen3_moe"));
  const auto model = checkpoint.model();
  const TrainingNeed need = summarise(checkpoint.spec).training;
  const Engine engine(kernels::ref::table(), {.threads = 1});
  Arena arena(cpu_device()), gradients(cpu_device());
  Tape tape(gradients);
  Context cx = engine.context(arena, Precision::bf16());
  cx.tape = &tape;
  cx.training = true;
  const Tensor ids = cx.upload(std::vector<int32_t>(static_cast<size_t>(need.length), 1));
  const Rows rows = Rows::batch(cx, 1, need.length);
  const Tensor states = model->states(cx, {.ids = ids, .rows = &rows});
  const Head& head = model->head();
  tape.backward(cx, ops::cross_entropy(cx, head.before_logits(cx, states), head.weight(), ids, {}).loss);
  EXPECT_EQ(arena.peak() + gradients.peak(), need.activations);
}

TEST(Summary, WindowsBoundTheCache) {
  const ModelSpec spec = golden_spec("gemma2");
  int64_t full = 0, all = 0, held = 0;
  for (const LayerSpec& layer : spec.decoder.layers) {
    const int64_t one = 2 * layer.attention.kv_heads * layer.attention.width, window = layer.attention.window;
    all += one;
    if (window == 0) full += one;
    held += one * (window == 0 ? spec.context : std::min(window, spec.context));
  }
  const CacheNeed cache = summarise(spec).cache;
  EXPECT_GT(all, full);
  EXPECT_EQ(cache.per_token, all);
  EXPECT_EQ(cache.per_token_beyond, full);
  EXPECT_EQ(cache.at_context, held);
}

TEST(Summary, NamesLayersInRanges) {
  EXPECT_EQ(layers_text({7}), "layer 7");
  EXPECT_EQ(layers_text({0, 1, 2}), "layers 0-2");
  EXPECT_EQ(layers_text({0, 1, 4, 6, 7}), "layers 0-1, 4, 6-7");
  EXPECT_EQ(layers_text({0, 2, 4, 6}), "layers 0, 2, 4, 6");
  EXPECT_EQ(layers_text({0, 2, 4, 6, 8, 10}), "layers 0, 2, 4, ..., 10");
}

TEST(Summary, AnAbsurdSizeIsAnError) {
  Json config = preset_config("mixtral-8x7b");
  config["hidden_size"] = config["intermediate_size"] = 2147483648;
  config["num_local_experts"] = 65536;
  config["head_dim"] = 128;
  expect_error([&] { summarise(read_spec(Config(config, "config.json"))); },
               {"config.json: decoder layer 0 experts", "does not fit in 64 bits"});
}

TEST(Picture, IsNarrowForEverything) {
  for (const std::string& name : goldens()) expect_narrow(draw_picture(golden_spec(name)), name);
  for (const std::string_view name : preset_names()) {
    const ModelSpec spec = read_spec(Config(preset_config(std::string(name)), "preset"));
    expect_narrow(report_text(spec, summarise(spec)), std::string(name));
  }
}

// As wide as real ones get: long numbers, layers that differ, heads cut in every layer.
TEST(Picture, IsNarrowForLargeModelsToo) {
  Json config = Checkpoint::open(test::golden("gpt_oss")).config;
  config.update({{"num_hidden_layers", 36},
                 {"hidden_size", 28672},
                 {"intermediate_size", 28672},
                 {"num_attention_heads", 128},
                 {"head_dim", 256},
                 {"sliding_window", 131072}});
  config["layer_types"] = Json::array();
  Json maps = Json::array();
  for (int i = 0; i < 36; ++i) {
    config["layer_types"].push_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
    maps.push_back(std::vector<int>(static_cast<size_t>(i + 1), 0));
  }
  const std::string picture = draw_picture(read_spec(Config(config, "config.json")));
  expect_narrow(picture, "gpt_oss");
  EXPECT_NE(picture.find("layers 0, 2, 4, ..., 34: softmax"), std::string::npos) << picture;
  EXPECT_NE(picture.find("a sink per"), std::string::npos) << picture;
  config["qkv_heads"] = {{"decoder", maps}};
  const ModelSpec spec = read_spec(Config(config, "config.json"));
  const std::string report = report_text(spec, summarise(spec));
  expect_narrow(draw_picture(spec), "cut gpt_oss");
  EXPECT_NE(report.find("and 32 more kinds of layers"), std::string::npos) << report;
  EXPECT_NE(report.find("a layer, most"), std::string::npos) << report;
}

TEST(Picture, ShowsWhatIsSpecial) {
  const std::pair<const char*, std::vector<const char*>> special[] = {
      {"gpt2", {"positions", "learned", "attention: layer norm", "causal", "the embedding again"}},
      {"bert", {"token types", "of the stream itself", "all see all", "dense"}},
      {"olmo2", {"├───┐ attention ", "all heads joined", "RMS norm"}},
      {"gpt_neox", {"of the stream before the attention", " columns"}},
      {"gemma2", {"soft cap 50", "window", "layer 1:", "times (w + 1)"}},
      {"gemma3", {"window 8", "base 10000", "norm on every head"}},
      {"gpt_oss", {"a sink per head", "yarn", "experts per token"}},
      {"deepseek_v3", {"router", "sigmoid", "groups", "layer 0:", "for every token", "down to"}},
      {"t5", {"ENCODER", "DECODER", "bias by distance", "of the memory", "buckets"}},
      {"marian", {"sines and cosines", "times"}},
      {"llama3", {"llama3 x", "share a key/value head"}},
      {"phi3_longrope", {"longrope"}},
  };
  for (const auto& [name, parts] : special) {
    const std::string picture = draw_picture(golden_spec(name));
    for (const char* part : parts) EXPECT_NE(picture.find(part), std::string::npos) << part << " in\n" << picture;
  }
}

TEST(Report, SaysThatHuggingFaceCannotLoadCutHeads) {
  Json config = preset_config("gpt2");
  config["n_layer"] = 2;
  config["qkv_heads"] = {{"decoder", {{0, 1, 2}, {0, 1, 2, 3, 4}}}};
  const ModelSpec spec = read_spec(Config(config, "config.json"));
  const ModelSummary summary = summarise(spec);
  const std::string text = report_text(spec, summary);
  EXPECT_NE(text.find("Hugging Face cannot load it"), std::string::npos) << text;
  EXPECT_NE(text.find("3 to 5 heads"), std::string::npos) << text;
  EXPECT_NE(text.find("heads were cut"), std::string::npos) << text;
  EXPECT_FALSE(report_json(spec, summary)["hugging_face_can_load"].get<bool>());
  EXPECT_EQ(summary.groups.size(), 2U);
}

TEST(Report, SaysTheSameAsJson) {
  for (const std::string& name : goldens()) {
    const ModelSpec spec = golden_spec(name);
    const ModelSummary s = summarise(spec);
    const auto json = report_json(spec, s);
    EXPECT_EQ(json["parameters"], s.parameters) << name;
    int64_t total = 0;
    for (const auto& part : json["parts"]) total += part.get<int64_t>();
    EXPECT_EQ(total, s.parameters) << name;
    EXPECT_EQ(json["bytes"]["weights"]["bf16"], 2 * s.parameters) << name;
    EXPECT_EQ(Json::parse(json.dump())["family"], spec.family);
  }
}

}  // namespace
}  // namespace qkv

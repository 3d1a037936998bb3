// Variants of public files: older configs, packed experts, 8-bit and 4-bit weights, cut heads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "core/host_values.h"
#include "io/safetensors_folder.h"
#include "kernels/tables.h"
#include "model/checkpoint/convert.h"
#include "model/describe/picture.h"
#include "support/pass.h"
#include "verify/recorded.h"
#include "verify/verify_model.h"

namespace qkv {
namespace variants_test {

namespace fs = std::filesystem;

Json config_of(const std::string& family) {
  return parse_json(read_file(test::golden(family) / "config.json", 1 << 20), "config.json");
}

// Tensors of a golden as floats, changed and written again beside a config.
class Rewritten {
 public:
  explicit Rewritten(const std::string& family)
      : family_(family),
        file_(Safetensors::open(test::golden(family) / "model.safetensors")),
        config(config_of(family)) {
    for (const StoredTensor& entry : file_.entries()) tensors_[entry.name] = {entry.shape, recorded_floats(entry)};
  }

  struct Numbers {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  Numbers take(const std::string& name) {
    Numbers taken = std::move(tensors_.at(name));
    tensors_.erase(name);
    return taken;
  }
  Numbers& at(const std::string& name) { return tensors_.at(name); }
  void put(const std::string& name, Numbers numbers) { tensors_[name] = std::move(numbers); }
  void put_bytes(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                 std::vector<uint8_t> bytes) {
    raw_.push_back({.name = name, .dtype = dtype, .shape = std::move(shape), .give = [bytes](ByteSink sink) {
                      sink(std::as_bytes(std::span(bytes)));
                    }});
  }

  Checkpoint open() {
    std::vector<OutgoingTensor> all = raw_;
    for (const auto& [name, numbers] : tensors_) {
      all.push_back({.name = name, .dtype = "F32", .shape = numbers.shape, .give = [&numbers = numbers](ByteSink sink) {
                       sink(std::as_bytes(std::span(numbers.values)));
                     }});
    }
    const fs::path folder = folder_.path() / std::to_string(times_++);
    fs::create_directory(folder);
    write_safetensors_folder(folder, all, {});
    std::ofstream(folder / "config.json") << config.dump();
    return Checkpoint::open(folder);
  }
  VerifyReport verify() {
    const Engine engine(kernels::best_table(), {.threads = 1});
    return verify_model(open(), engine, Precision::f32(), test::golden(family_));
  }

 private:
  std::string family_;
  Safetensors file_;
  TempFolder folder_;
  int times_ = 0;  // it was written
  std::map<std::string, Numbers> tensors_;
  std::vector<OutgoingTensor> raw_;

 public:
  Json config;
};

TEST(OlderConfigs, MeanTheSame) {
  for (const std::string family :
       {"llama", "llama3", "llama_linear", "qwen2_yarn", "phi3_longrope", "deepseek_yarn", "gpt_neox"}) {
    Rewritten model(family);
    Json rope = model.config["rope_parameters"];
    model.config.erase("rope_parameters");
    model.config["torch_dtype"] = model.config["dtype"];
    model.config.erase("dtype");
    model.config["rope_theta"] = rope["rope_theta"];
    rope.erase("rope_theta");
    if (rope.contains("partial_rotary_factor")) {
      model.config[family == "gpt_neox" ? "rotary_pct" : "partial_rotary_factor"] = rope["partial_rotary_factor"];
      rope.erase("partial_rotary_factor");
    }
    if (rope["rope_type"] != "default") {
      rope["type"] = rope["rope_type"];
      rope.erase("rope_type");
      model.config["rope_scaling"] = rope;
    }
    EXPECT_TRUE(model.verify().good()) << family << " " << model.config.dump();
  }
  Rewritten gemma("gemma3");
  gemma.config["rope_theta"] = gemma.config["rope_parameters"]["full_attention"]["rope_theta"];
  gemma.config["rope_local_base_freq"] = gemma.config["rope_parameters"]["sliding_attention"]["rope_theta"];
  gemma.config["sliding_window_pattern"] = 6;
  gemma.config.erase("rope_parameters");
  gemma.config.erase("layer_types");
  gemma.config.erase("_sliding_window_pattern");
  EXPECT_TRUE(gemma.verify().good());
  for (const std::string family : {"cohere2", "exaone4", "olmo3", "smollm3", "llama4"}) {
    Rewritten model(family);
    model.config.erase("layer_types");
    if (family == "smollm3" || family == "llama4") model.config.erase("no_rope_layers");
    if (family == "llama4") model.config.erase("moe_layers");
    Json rope = model.config["rope_parameters"];
    model.config.erase("rope_parameters");
    model.config["rope_theta"] = family == "olmo3" ? rope["full_attention"]["rope_theta"] : rope["rope_theta"];
    EXPECT_TRUE(model.verify().good()) << family << " " << model.config.dump();
  }
  Rewritten modern("modernbert");
  modern.config["global_rope_theta"] = modern.config["rope_parameters"]["full_attention"]["rope_theta"];
  modern.config["local_rope_theta"] = modern.config["rope_parameters"]["sliding_attention"]["rope_theta"];
  modern.config.erase("rope_parameters");
  modern.config.erase("layer_types");
  EXPECT_TRUE(modern.verify().good());
}

// What a family usually is not, its config may say: the weights of one as those of another.
TEST(EncoderDecoders, SayWhereNormsAndPositionsAre) {
  Rewritten bart("mbart");
  bart.config["model_type"] = "bart";
  EXPECT_ANY_THROW(bart.verify()) << "BART has no last norms";
  bart.config["normalize_before"] = bart.config["add_final_layer_norm"] = true;
  EXPECT_TRUE(bart.verify().good());
  bart.config["normalize_before"] = false;
  EXPECT_FALSE(bart.verify().good());

  Rewritten marian("pegasus");
  marian.config["model_type"] = "marian";
  marian.config["normalize_before"] = marian.config["add_final_layer_norm"] = true;
  EXPECT_TRUE(marian.verify().good()) << "sinusoids computed";
  marian.config["static_position_embeddings"] = false;
  marian.config["position_offset"] = 0;
  EXPECT_TRUE(marian.verify().good()) << "sinusoids stored";
  Rewritten::Numbers& stored = marian.at("model.encoder.embed_positions.weight");
  for (float& v : stored.values) v = -v;
  EXPECT_FALSE(marian.verify().good()) << "stored ones are read";
  marian.config["static_position_embeddings"] = true;
  EXPECT_TRUE(marian.verify().good()) << "computed ones are not";
  marian.config["position_offset"] = 1;
  EXPECT_FALSE(marian.verify().good());
}

TEST(EncoderDecoders, HaveTwoVocabularies) {
  Rewritten two("mbart");
  Rewritten::Numbers shared = two.take("model.shared.weight"), source = shared;
  source.shape[0] += 3;
  source.values.resize(source.values.size() + 3 * 32);
  two.put("model.encoder.embed_tokens.weight", source);
  two.put("model.decoder.embed_tokens.weight", shared);
  two.config["share_encoder_decoder_embeddings"] = false;
  two.config["decoder_vocab_size"] = two.config["vocab_size"];
  two.config["vocab_size"] = source.shape[0];
  EXPECT_TRUE(two.verify().good());
}

std::vector<float> logits_of(ModelSpec spec, const Checkpoint& checkpoint, const std::vector<int32_t>& ids) {
  test::Pass pass({.precision = Precision::f32()});
  const auto model = Model::make(std::move(spec), checkpoint.weights(cpu_device()));
  const Rows rows = Rows::batch(pass.cx, 1, static_cast<int64_t>(ids.size()));
  return host_floats(model->logits(pass.cx, {.ids = pass.cx.upload(ids), .rows = &rows}));
}

// Of two tokens the first sees itself alone, whatever its scores; the second's queries are scaled as the scale would be.
TEST(Llama4, SharpensFarQueries) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("llama4"));
  const std::vector<int32_t> ids{5, 17};
  ModelSpec far = checkpoint.spec, scaled = far;
  AttentionSpec &sharp = far.decoder.layers[3].attention, &plain = scaled.decoder.layers[3].attention;
  sharp.temperature = TemperatureSpec{.scale = 0.7, .floor = 2};
  plain.temperature.reset();
  EXPECT_LT(distance(logits_of(scaled, checkpoint, ids), logits_of(checkpoint.spec, checkpoint, ids)).nmse, 1e-20);
  EXPECT_GT(distance(logits_of(far, checkpoint, ids), logits_of(checkpoint.spec, checkpoint, ids)).nmse, 1e-9);
  plain.scale = (1 + 0.7 * std::log(2.0)) / std::sqrt(static_cast<double>(plain.width));
  EXPECT_LT(distance(logits_of(far, checkpoint, ids), logits_of(scaled, checkpoint, ids)).nmse, 1e-12);
}

// 7B's one key/value head as a group (11B), and with a norm for each branch (40B).
TEST(Falcon, IsTheSameInItsNewerArchitecture) {
  Rewritten model("falcon");
  model.config["new_decoder_architecture"] = true;
  model.config["num_kv_heads"] = 1;
  model.config["num_ln_in_parallel_attn"] = 1;
  EXPECT_TRUE(model.verify().good());
  for (const std::string layer : {"transformer.h.0.", "transformer.h.1."}) {
    for (const std::string part : {".weight", ".bias"}) {
      const Rewritten::Numbers norm = model.take(layer + "input_layernorm" + part);
      model.put(layer + "ln_attn" + part, norm);
      model.put(layer + "ln_mlp" + part, norm);
    }
  }
  model.config["num_ln_in_parallel_attn"] = nullptr;
  EXPECT_TRUE(model.verify().good());
  for (float& v : model.at("transformer.h.0.ln_mlp.weight").values) v *= 1.01F;
  EXPECT_FALSE(model.verify().good());
}

TEST(PackedExperts, AreReadAsTransformersHoldsThem) {
  for (const std::string family : {"mixtral", "qwen3_moe"}) {
    Rewritten model(family);
    const bool mixtral = family == "mixtral";
    const int64_t experts = model.config["num_local_experts"];
    for (int64_t layer = 0; layer < model.config["num_hidden_layers"]; ++layer) {
      const std::string root = "model.layers." + std::to_string(layer) + ".";
      const std::string from = root + (mixtral ? "block_sparse_moe." : "mlp.");
      model.put(root + "mlp.gate.weight", model.take(from + "gate.weight"));
      Rewritten::Numbers both, down;
      for (int64_t e = 0; e < experts; ++e) {
        const std::string one = from + "experts." + std::to_string(e) + ".";
        const auto gate = model.take(one + (mixtral ? "w1" : "gate_proj") + ".weight");
        const auto up = model.take(one + (mixtral ? "w3" : "up_proj") + ".weight");
        const auto out = model.take(one + (mixtral ? "w2" : "down_proj") + ".weight");
        for (const auto* half : {&gate, &up})
          both.values.insert(both.values.end(), half->values.begin(), half->values.end());
        down.values.insert(down.values.end(), out.values.begin(), out.values.end());
        both.shape = {experts, 2 * gate.shape[0], gate.shape[1]};
        down.shape = {experts, out.shape[0], out.shape[1]};
      }
      model.put(root + "mlp.experts.gate_up_proj", both);
      model.put(root + "mlp.experts.down_proj", down);
    }
    EXPECT_TRUE(model.verify().good()) << family;
  }
}

std::vector<float> weight_of(const Checkpoint& checkpoint, const std::string& name) {
  return host_floats(checkpoint.weights(cpu_device()).at(name).master());
}

// Each weight as sign and power of two, which e4m3 holds, times a scale for its tile.
TEST(EightBitFloats, AreReadWithTheirScales) {
  Rewritten model("deepseek_v3");
  const std::string name = "model.layers.0.mlp.gate_proj.weight";
  const auto original = model.take(name);
  std::vector<uint8_t> codes;
  std::vector<float> expected;
  const float scale = 0.37F;
  for (const float value : original.values) {
    const int power = std::clamp(std::ilogb(value), -6, 8);
    codes.push_back(static_cast<uint8_t>((value < 0 ? 0x80 : 0) | ((power + 7) << 3)));
    expected.push_back(std::copysign(std::ldexp(scale, power), value));
  }
  model.put_bytes(name, "F8_E4M3", original.shape, codes);
  model.put(name + "_scale_inv", {{1, 1}, {scale}});  // one tile of 128 x 128 covers it
  EXPECT_EQ(weight_of(model.open(), "layers.0.mlp.gate"), expected);
}

// gpt-oss: [E, 2F, C / 32, 16] bytes, the low half first, gate and up alternating.
TEST(FourBitExperts, AreReadAsGptOssStoresThem) {
  static constexpr float kCodes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0F, -0.5, -1, -1.5, -2, -3, -4, -6};
  Rewritten model("gpt_oss");
  const std::string name = "model.layers.1.mlp.experts.gate_up_proj";
  const auto original = model.take(name);  // [E, C, 2F]
  const int64_t experts = original.shape[0], width = original.shape[1], both = original.shape[2];
  ASSERT_EQ(width, 32);
  std::vector<uint8_t> blocks, scales;
  std::vector<float> gate, up;
  for (int64_t row = 0; row < experts * both; ++row) {
    const auto exponent = static_cast<uint8_t>(120 + row % 11);
    scales.push_back(exponent);
    for (int64_t k = 0; k < width; ++k) {
      const auto code = static_cast<uint8_t>((row * 7 + k * 5) % 16);
      if (k % 2 == 0) blocks.push_back(code);
      if (k % 2 == 1) blocks.back() = static_cast<uint8_t>(blocks.back() | (code << 4));
      (row % 2 == 0 ? gate : up).push_back(std::ldexp(kCodes[code], exponent - 127));
    }
  }
  model.put_bytes(name + "_blocks", "U8", {experts, both, width / 32, 16}, blocks);
  model.put_bytes(name + "_scales", "U8", {experts, both, width / 32}, scales);
  const Checkpoint checkpoint = model.open();
  EXPECT_EQ(weight_of(checkpoint, "layers.1.mlp.experts.gate"), gate);
  EXPECT_EQ(weight_of(checkpoint, "layers.1.mlp.experts.up"), up);
}

const std::vector<int32_t> kIds{1, 5, 9, 40, 7, 7, 23, 60};

std::vector<float> logits_of(const Model& model, const std::vector<int32_t>& ids) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  const Rows rows = Rows::batch(cx, 1, static_cast<int64_t>(ids.size()));
  return host_floats(model.logits(cx, {.ids = cx.upload(ids), .rows = &rows}));
}

// Phi-3 has other rotary angles beyond its original context (16 here), whatever it read before.
TEST(LongRope, ChoosesItsAnglesByTheTextAtHand) {
  std::vector<int32_t> longer = kIds;
  while (longer.size() < 24) longer.push_back(static_cast<int32_t>(longer.size()));
  const Checkpoint checkpoint = Checkpoint::open(test::golden("phi3_longrope"));
  const std::unique_ptr<Model> model = checkpoint.model();
  const std::vector<float> first_short = logits_of(*model, kIds), then_long = logits_of(*model, longer);
  EXPECT_EQ(logits_of(*model, kIds), first_short);
  EXPECT_EQ(logits_of(*checkpoint.model(), longer), then_long);
  const std::vector<float> start(then_long.begin(),
                                 then_long.begin() + static_cast<std::ptrdiff_t>(first_short.size()));
  EXPECT_NE(start, first_short) << "the first tokens of a longer text turn by the long factors";
}

// A head that was cut says nothing, which is what W_O without its columns makes of it.
TEST(CutHeads, LeaveTheOthersAsTheyWere) {
  constexpr int64_t kCut = 1, kHeads = 4, kWidth = 8;
  const std::string layer = "model.layers.1.self_attn.";
  Rewritten silenced("llama"), cut("llama");
  auto& out = silenced.at(layer + "o_proj.weight");
  for (size_t i = 0; i < out.values.size(); ++i) {
    if (static_cast<int64_t>(i) % (kHeads * kWidth) / kWidth == kCut) out.values[i] = 0;
  }

  const auto q = cut.take(layer + "q_proj.weight"), o = cut.take(layer + "o_proj.weight");
  Rewritten::Numbers fewer_q{{(kHeads - 1) * kWidth, q.shape[1]}, {}}, fewer_o{{o.shape[0], (kHeads - 1) * kWidth}, {}};
  for (size_t i = 0; i < q.values.size(); ++i) {
    if (static_cast<int64_t>(i) / q.shape[1] / kWidth != kCut) fewer_q.values.push_back(q.values[i]);
  }
  for (size_t i = 0; i < o.values.size(); ++i) {
    if (static_cast<int64_t>(i) % (kHeads * kWidth) / kWidth != kCut) fewer_o.values.push_back(o.values[i]);
  }
  cut.put(layer + "q_proj.weight", fewer_q);
  cut.put(layer + "o_proj.weight", fewer_o);
  cut.config["qkv_heads"] = {{"decoder", {{0, 0, 1, 1}, {0, 1, 1}}}};
  const Checkpoint opened = cut.open();
  EXPECT_TRUE(opened.spec.heads_cut);
  const std::vector<float> with = logits_of(*silenced.open().model(), kIds), without = logits_of(*opened.model(), kIds);
  EXPECT_LE(distance(without, with).nmse, 1e-12);
  EXPECT_GT(distance(without, logits_of(*Rewritten("llama").open().model(), kIds)).nmse, 1e-4)
      << "the head said nothing anyway";
}

// What a layer without a feed-forward computes is what one computes whose feed-forward writes zeros.
TEST(AttentionAlone, IsAFeedForwardThatWritesNothing) {
  Rewritten silenced("llama"), without("llama");
  for (const std::string i : {"0", "1"}) {
    for (float& v : silenced.at("model.layers." + i + ".mlp.down_proj.weight").values) v = 0;
    for (const std::string which : {"gate", "up", "down"}) {
      without.take("model.layers." + i + ".mlp." + which + "_proj.weight");
    }
    without.take("model.layers." + i + ".post_attention_layernorm.weight");
  }
  without.config["intermediate_size"] = 0;
  const Checkpoint alone = without.open();
  const std::unique_ptr<Model> model = alone.model();
  const std::vector<float> right = logits_of(*silenced.open().model(), kIds);
  EXPECT_EQ(logits_of(*model, kIds), right);
  EXPECT_GT(distance(right, logits_of(*Rewritten("llama").open().model(), kIds)).nmse, 1e-4)
      << "the feed-forwards said nothing anyway";

  const TempFolder temp;
  write_hugging_face(temp.path() / "again", alone.config, model->weights(), *alone.names, {});
  EXPECT_EQ(logits_of(*Checkpoint::open(temp.path() / "again").model(), kIds), right);
  expect_error([&] { convert_model(temp.path() / "again", temp.path() / "no.gguf", {}); }, {"without a feed-forward"});
  const std::string picture = draw_picture(alone.spec);
  EXPECT_EQ(picture.find("feed-forward"), std::string::npos) << picture;
  EXPECT_NE(draw_picture(Checkpoint::open(test::golden("llama")).spec).find("feed-forward"), std::string::npos);
}

TEST(AttentionAlone, NeedsNormsInFront) {
  Json config = config_of("bert");
  config["intermediate_size"] = 0;
  expect_error([&] { read_spec(Config(config, "config.json")); }, {"not in front"});
  config = config_of("llama");
  config["intermediate_size"] = -1;
  expect_error([&] { read_spec(Config(config, "config.json")); }, {"feed-forward width is -1"});
}

}  // namespace variants_test
}  // namespace qkv

// Every direction of convert, bit by bit; the goldens are files that transformers wrote.
#include "model/checkpoint/convert.h"

#include "base/expect_error.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "model/describe/spec_difference.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_model.h"
#include "model/gguf/gguf_support.h"
#include "support/pass.h"
#include "verify/verify_model.h"

namespace qkv::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kHeldByGguf{
    "deepseek_v3", "gemma2",   "gemma3", "gpt2",    "gpt_neox",      "gpt_oss",  "llama",      "llama3", "llama_linear",
    "mistral",     "mixtral",  "olmo2",  "phi3",    "phi3_longrope", "qwen2",    "qwen2_yarn", "qwen3",  "qwen3_moe",
    "t5",          "t5_gated", "bloom",  "cohere2", "ernie4_5",      "exaone4",  "falcon",     "glm4",   "glm4_moe",
    "granite",     "nemotron", "olmo3",  "phi",     "qwen2_moe",     "stablelm", "starcoder2"};

class HeldByGguf : public testing::TestWithParam<std::string> {
 protected:
  fs::path original() const { return golden(GetParam()); }
  // Norms that multiply by 1 + w, which GGUF holds.
  bool is_gemma() const { return GetParam().starts_with("gemma") || GetParam() == "nemotron"; }
  const TempFolder folder;
};
INSTANTIATE_TEST_SUITE_P(Goldens, HeldByGguf, testing::ValuesIn(kHeldByGguf), [](const auto& i) { return i.param; });

TEST_P(HeldByGguf, ComesBackBitByBit) {
  const fs::path gguf = folder.path() / "m.gguf", back = folder.path() / "back";
  convert_model(original(), gguf, {});
  convert_model(gguf, back, {});
  const Checkpoint before = Checkpoint::open(original()), after = Checkpoint::open(back);
  EXPECT_EQ(difference(before.spec, after.spec), "");
  EXPECT_EQ(before.spec.norm.offset, after.spec.norm.offset);
  EXPECT_EQ(before.spec.family, after.spec.family);
  EXPECT_EQ(before.spec.tokens.eos, after.spec.tokens.eos);
  EXPECT_EQ(before.spec.tokens.decoder_start, after.spec.tokens.decoder_start);
  EXPECT_FALSE(after.config.contains(kNormOffsetKey));
  const Weights a = before.weights(cpu_device()), b = after.weights(cpu_device());
  std::set<std::string> norms;
  for (const WeightSpec& weight : weight_list(before.spec)) {
    if (is_gemma() && weight.part == Part::norm && !weight.name.ends_with(".bias")) norms.insert(weight.name);
  }
  EXPECT_EQ(norms.empty(), !is_gemma());
  expect_same_weights(a, b, norms);
  for (const std::string& name : norms) {  // stored as 1 + w, which rounds
    std::vector<float> expected = floats_of(a.at(name));
    for (float& value : expected) {
      const float stored = 1.0F + value;
      value = stored - 1.0F;
    }
    EXPECT_EQ(floats_of(b.at(name)), expected) << name;
  }
}

// Gemma's too: subtracting 1 from norms near 1 and adding it again is exact.
TEST_P(HeldByGguf, FileComesBackThroughAFolder) {
  const fs::path first = folder.path() / "first.gguf", between = folder.path() / GetParam(),
                 second = folder.path() / "second.gguf";
  convert_model(original(), first, {});
  convert_model(first, between, {});
  convert_model(between, second, {});
  EXPECT_TRUE(contents(first) == contents(second));
}

TEST_P(HeldByGguf, ComputesAsTheFolderDoes) {
  const fs::path gguf = folder.path() / "m.gguf";
  convert_model(original(), gguf, {});
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto report = [&](const fs::path& path) {
    return verify_model(Checkpoint::open(path), engine, Precision::f32(), original());
  };
  const VerifyReport of_folder = report(original()), of_gguf = report(gguf);
  ASSERT_EQ(of_folder.lines.size(), of_gguf.lines.size());
  for (size_t i = 0; i < of_gguf.lines.size(); ++i) {
    EXPECT_EQ(of_gguf.lines[i].verdict, of_folder.lines[i].verdict) << of_gguf.lines[i].name;
    if (!is_gemma()) {
      EXPECT_EQ(of_gguf.lines[i].nmse, of_folder.lines[i].nmse) << of_gguf.lines[i].name;
    }
  }
  EXPECT_TRUE(of_gguf.good());
}

// What a config says and no key of GGUF does must follow from the architecture, or the model is refused.
TEST_P(HeldByGguf, GgufSaysTheSameSpec) {
  const fs::path gguf = folder.path() / "m.gguf";
  convert_model(original(), gguf, {});
  EXPECT_EQ(difference(Checkpoint::open(original()).spec, Checkpoint::open(gguf).spec), "");
}

class EveryGolden : public testing::TestWithParam<std::string> {};
std::vector<std::string> every_golden() {
  std::vector<std::string> all = kHeldByGguf;
  all.insert(all.end(), {"bart", "bert", "deepseek_yarn", "marian", "gptj", "llama4", "m2m_100", "mbart", "modernbert",
                         "opt", "pegasus", "roberta", "smollm3"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Goldens, EveryGolden, testing::ValuesIn(every_golden()),
                         [](const auto& i) { return i.param; });

TEST_P(EveryGolden, FolderToFolderIsTheSameFile) {
  const TempFolder folder;
  const fs::path from = golden(GetParam()), to = folder.path() / "copy";
  convert_model(from, to, {});
  EXPECT_TRUE(contents(from / "model.safetensors") == contents(to / "model.safetensors"));
  EXPECT_EQ(parse_json(contents(from / "config.json"), "a"), parse_json(contents(to / "config.json"), "b"));
  if (fs::exists(from / "generation_config.json")) {
    EXPECT_EQ(contents(from / "generation_config.json"), contents(to / "generation_config.json"));
  }
  EXPECT_FALSE(fs::exists(to / "io.safetensors"));
}

// --- layouts in GGUF, by formulas of our own -------------------------------------------------------------------------

struct Both {
  Safetensors folder;
  Gguf gguf;
  std::vector<float> ours(const std::string& name) const { return numbers_of<float>(gguf.at(name).bytes); }
  std::vector<float> theirs(const std::string& name) const { return numbers_of<float>(folder.at(name).bytes); }
};

Both as_gguf(const std::string& model, const TempFolder& folder) {
  convert_model(golden(model), folder.path() / "m.gguf", {});
  return {Safetensors::open(golden(model) / "model.safetensors"), Gguf::open(folder.path() / "m.gguf")};
}

TEST(GgufNumbers, LlamaTurnsPairsThatLieSideBySide) {
  const TempFolder folder;
  const Both both = as_gguf("llama", folder);
  const size_t width = 8, columns = 32;
  for (const auto& [letter, heads] : {std::pair{"q", size_t{4}}, std::pair{"k", size_t{2}}}) {
    const std::vector<float> stored = both.ours(std::string("blk.1.attn_") + letter + ".weight"),
                             plain = both.theirs(std::string("model.layers.1.self_attn.") + letter + "_proj.weight");
    ASSERT_EQ(stored.size(), heads * width * columns);
    for (size_t row = 0; row < heads * width; ++row) {
      const size_t head = row / width, pair = row % width / 2, half = row % 2;
      for (size_t c = 0; c < columns; ++c) {
        ASSERT_EQ(stored[row * columns + c], plain[(head * width + half * width / 2 + pair) * columns + c]) << row;
      }
    }
  }
  EXPECT_EQ(both.ours("blk.0.attn_v.weight"), both.theirs("model.layers.0.self_attn.v_proj.weight"));
}

TEST(GgufNumbers, OthersAreNotTurned) {
  const TempFolder folder;
  const Both both = as_gguf("qwen3", folder);
  EXPECT_EQ(both.ours("blk.0.attn_q.weight"), both.theirs("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_EQ(both.ours("blk.0.attn_q_norm.weight"), both.theirs("model.layers.0.self_attn.q_norm.weight"));
}

TEST(GgufNumbers, GemmasNormsStandAroundOne) {
  const TempFolder folder;
  const Both both = as_gguf("gemma3", folder);
  for (const auto& [ours, theirs] :
       {std::pair{"output_norm", "model.norm"}, std::pair{"blk.2.attn_k_norm", "model.layers.2.self_attn.k_norm"},
        std::pair{"blk.0.post_ffw_norm", "model.layers.0.post_feedforward_layernorm"}}) {
    std::vector<float> expected = both.theirs(std::string(theirs) + ".weight");
    for (float& value : expected) value += 1;
    EXPECT_EQ(both.ours(std::string(ours) + ".weight"), expected) << ours;
  }
}

TEST(GgufNumbers, NeoxKeepsAllQueriesThenAllKeys) {
  const TempFolder folder;
  const Both both = as_gguf("gpt_neox", folder);
  const std::vector<float> stored = both.ours("blk.0.attn_qkv.weight"),
                           plain = both.theirs("gpt_neox.layers.0.attention.query_key_value.weight");
  const size_t heads = 4, width = 8, columns = 32;
  for (size_t which = 0; which < 3; ++which) {
    for (size_t head = 0; head < heads; ++head) {
      for (size_t i = 0; i < width * columns; ++i) {
        ASSERT_EQ(stored[(which * heads + head) * width * columns + i],
                  plain[(head * 3 + which) * width * columns + i]);
      }
    }
  }
}

TEST(GgufNumbers, Gpt2IsOutputsByInputs) {
  const TempFolder folder;
  const Both both = as_gguf("gpt2", folder);
  const std::vector<float> stored = both.ours("blk.1.ffn_up.weight"),
                           plain = both.theirs("transformer.h.1.mlp.c_fc.weight");
  EXPECT_EQ(both.gguf.at("blk.1.ffn_up.weight").shape, (std::vector<int64_t>{128, 32}));
  for (size_t o = 0; o < 128; ++o) {
    for (size_t k = 0; k < 32; ++k) ASSERT_EQ(stored[o * 32 + k], plain[k * 128 + o]);
  }
}

TEST(GgufNumbers, GptOssGatesLieApart) {
  const TempFolder folder;
  const Both both = as_gguf("gpt_oss", folder);
  const std::vector<float> gate = both.ours("blk.0.ffn_gate_exps.weight"), up = both.ours("blk.0.ffn_up_exps.weight"),
                           plain = both.theirs("model.layers.0.mlp.experts.gate_up_proj");
  const size_t experts = 4, inputs = 32, outputs = 24;
  for (size_t e = 0; e < experts; ++e) {
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t k = 0; k < inputs; ++k) {
        const size_t at = (e * outputs + o) * inputs + k, from = (e * inputs + k) * 2 * outputs + 2 * o;
        ASSERT_EQ(gate[at], plain[from]);
        ASSERT_EQ(up[at], plain[from + 1]);
      }
    }
  }
}

// 1 for wavelengths below 32 / 4, 8 beyond 32 / 1 (the golden's settings), as published with Llama 3.1.
TEST(GgufNumbers, Llama3FactorsStretchLongWaves) {
  const TempFolder folder;
  const std::vector<float> factors = as_gguf("llama3", folder).ours("rope_freqs.weight");
  ASSERT_EQ(factors.size(), 8U);
  for (size_t i = 0; i < factors.size(); ++i) {
    const double wave = 6.283185307179586 * std::pow(500000.0, static_cast<double>(i) / 8);
    if (wave < 8) {
      EXPECT_EQ(factors[i], 1) << i;
    }
    if (wave > 32) {
      EXPECT_EQ(factors[i], 8) << i;
    }
    const double smooth = (32 / wave - 1) / 3;
    if (wave > 8 && wave < 32) {
      EXPECT_FLOAT_EQ(factors[i], static_cast<float>(1 / ((1 - smooth) / 8 + smooth))) << i;
    }
  }
  const Json rope = Checkpoint::open(folder.path() / "m.gguf").config.at("rope_parameters");
  EXPECT_EQ(rope.at("rope_type"), "llama3");
  EXPECT_EQ(rope.at("original_max_position_embeddings"), 32);
}

// --- types -----------------------------------------------------------------------------------------------------------

TEST(ConvertTypes, MatricesChangeAndVectorsStay) {
  const TempFolder folder;
  const fs::path path = folder.path() / "m.gguf";
  convert_model(golden("qwen3_moe"), path, {.dtype = "Q8_0"});
  const Gguf gguf = Gguf::open(path);
  EXPECT_EQ(gguf.integer("general.file_type"), 7);
  EXPECT_EQ(gguf.at("blk.0.attn_q.weight").dtype, "Q8_0");
  EXPECT_EQ(gguf.at("blk.0.ffn_up_exps.weight").dtype, "Q8_0");
  EXPECT_EQ(gguf.at("blk.0.ffn_down_exps.weight").dtype, "F16");  // rows of 24 are no blocks of 32
  EXPECT_EQ(gguf.at("blk.0.ffn_gate_inp.weight").dtype, "F32");
  EXPECT_EQ(gguf.at("blk.0.attn_norm.weight").dtype, "F32");
  EXPECT_EQ(gguf.at("blk.0.attn_q_norm.weight").dtype, "F32");
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.spec.dtype, DType::f32);
  for (const auto& [name, weight] : checkpoint.weights(cpu_device())) EXPECT_FALSE(bytes_of(weight).empty()) << name;
}

TEST(ConvertTypes, SmallFloatsComeBackFromGgufAsTheyWere) {
  const TempFolder folder;
  const fs::path half = folder.path() / "half", gguf = folder.path() / "m.gguf", back = folder.path() / "back";
  convert_model(golden("llama"), half, {.dtype = "BF16"});
  EXPECT_EQ(Checkpoint::open(half).config.at("dtype"), "bfloat16");
  convert_model(half, gguf, {});
  EXPECT_EQ(Gguf::open(gguf).at("blk.0.attn_q.weight").dtype, "BF16");
  EXPECT_EQ(Gguf::open(gguf).integer("general.file_type"), 32);
  convert_model(gguf, back, {});
  EXPECT_TRUE(contents(half / "model.safetensors") == contents(back / "model.safetensors"));
}

TEST(ConvertTypes, ProgressEndsAtAllBytes) {
  const TempFolder folder;
  for (const std::string out : {"m.gguf", "folder"}) {
    int64_t last = 0, total = -1, calls = 0;
    convert_model(golden("gpt2"), folder.path() / out, {.dtype = "BF16", .progress = [&](int64_t done, int64_t of) {
                                                          EXPECT_GE(done, last);
                                                          last = done;
                                                          total = of;
                                                          ++calls;
                                                        }});
    EXPECT_EQ(last, total);
    EXPECT_GT(calls, 10);
  }
}

// --- refusals --------------------------------------------------------------------------------------------------------

TEST(ConvertRefuses, WhatGgufCannotHold) {
  const TempFolder folder;
  const fs::path to = folder.path() / "m.gguf";
  const auto refuses = [&](const std::string& model, std::initializer_list<std::string_view> parts) {
    expect_error([&] { convert_model(golden(model), to, {}); }, parts);
    EXPECT_TRUE(fs::is_empty(folder.path())) << model;
  };
  refuses("bart", {"GGUF has no place for a model of the family bart"});
  refuses("marian", {"GGUF has no place for a model of the family marian"});
  refuses("bert", {"family bert", "head that names masked words"});
  for (const std::string other : {"gptj", "llama4", "m2m_100", "mbart", "modernbert", "opt", "pegasus", "roberta"}) {
    refuses(other, {"GGUF has no place for a model of the family " + other});
  }
  // Its file says nothing of layers without rotary positions: every fourth is meant.
  refuses("smollm3", {"GGUF cannot say all of this model", "layer 1 rotary positions"});
  refuses("deepseek_yarn", {"GGUF cannot say all of this model", "rope scaling differs"});
}

// A change of a config that no GGUF key holds must not be lost in silence.
TEST(ConvertRefuses, WhatWouldBeLost) {
  const TempFolder folder;
  const auto changed = [&](const std::string& model, const std::string& key, const Json& value) {
    const fs::path copy = folder.path() / (model + "-" + key);
    fs::create_directory(copy);
    fs::copy_file(golden(model) / "model.safetensors", copy / "model.safetensors");
    Json config = parse_json(contents(golden(model) / "config.json"), "config.json");
    config[key] = value;
    std::ofstream(copy / "config.json") << config.dump();
    return copy;
  };
  const fs::path to = folder.path() / "m.gguf";
  const auto refuses = [&](const fs::path& from, std::string_view part) {
    expect_error([&] { convert_model(from, to, {}); }, {"GGUF cannot say all of this model", part});
    EXPECT_FALSE(fs::exists(to));
  };
  refuses(changed("gemma2", "query_pre_attn_scalar", 16), "attention scale");
  refuses(changed("gemma2", "layer_types", {"full_attention", "sliding_attention"}), "window is 0 and 8");
  refuses(changed("gemma2", "attn_logit_softcapping", nullptr), "softcap is 0 and 50");
  refuses(changed("qwen3_moe", "norm_topk_prob", false), "renormalised expert weights is false and true");
  refuses(changed("llama", "hidden_act", "gelu"), "activation differs");
  refuses(changed("gpt2", "activation_function", "relu"), "activation differs");
  refuses(changed("gpt_oss", "swiglu_limit", 5), "gate limit is 5 and 7");
  refuses(changed("t5", "scale_decoder_outputs", false), "factor before the head");
  refuses(changed("t5", "relative_attention_max_distance", 64), "relative bias differs");
}

// A map that names all heads says what the weights hold, in qkv's own key.
TEST(ConvertHeadsCutOut, FoldersSaySoAndGgufRefuses) {
  const TempFolder folder;
  const fs::path cut = folder.path() / "cut";
  fs::create_directory(cut);
  fs::copy_file(golden("llama") / "model.safetensors", cut / "model.safetensors");
  Json config = parse_json(contents(golden("llama") / "config.json"), "config.json");
  config["qkv_heads"] = {{"decoder", {{0, 0, 1, 1}, {0, 0, 1, 1}}}};
  std::ofstream(cut / "config.json") << config.dump();

  const std::vector<std::string> notes = convert_model(cut, folder.path() / "copy", {});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("Hugging Face transformers cannot"), std::string::npos);
  EXPECT_TRUE(Checkpoint::open(folder.path() / "copy").spec.heads_cut);
  expect_error([&] { convert_model(cut, folder.path() / "m.gguf", {}); }, {"heads cut out"});
  EXPECT_FALSE(fs::exists(folder.path() / "m.gguf"));
}

TEST(ConvertTo, MayBeSaid) {
  const TempFolder folder;
  using To = ConvertOptions::To;
  convert_model(golden("llama"), folder.path() / "blob", {.to = To::gguf});
  EXPECT_EQ(Checkpoint::open(folder.path() / "blob").spec.family, "llama");
  convert_model(folder.path() / "blob", folder.path() / "folder.gguf", {.to = To::hugging_face});
  EXPECT_TRUE(contents(golden("llama") / "model.safetensors") ==
              contents(folder.path() / "folder.gguf" / "model.safetensors"));
}

TEST(ConvertRefuses, ToOverwriteAndBlocksInFolders) {
  const TempFolder folder;
  const fs::path there = folder.write("there.gguf", "old");
  expect_error([&] { convert_model(golden("llama"), there, {}); }, {"exists already"});
  EXPECT_EQ(contents(there), "old");
  expect_error([&] { convert_model(golden("llama"), folder.path() / "new", {.dtype = "Q8_0"}); },
               {"cannot be written as Q8_0 in a Hugging Face folder"});
  expect_error([&] { convert_model(folder.path() / "nowhere", folder.path() / "new", {}); },
               {"there is no such file or folder"});
}

// A model folder with the files of a golden model, each a link to blobs/N, as in the cache of Hugging Face.
fs::path cache_like(const TempFolder& folder) {
  const fs::path model = folder.path() / "models--x" / "snapshots" / "abc",
                 blobs = folder.path() / "models--x" / "blobs";
  fs::create_directories(model);
  fs::create_directories(blobs);
  int number = 0;
  for (const auto& entry : fs::directory_iterator(golden("llama"))) {
    if (!entry.is_regular_file()) continue;
    const fs::path blob = fs::path("../../blobs") / std::to_string(number++);
    fs::copy_file(entry.path(), model / blob);
    fs::create_symlink(blob, model / entry.path().filename());
  }
  return model;
}

TEST(ConvertCopies, FilesOfTheFolderAndOfTheCacheItLinksTo) {
  const TempFolder folder;
  const fs::path model = cache_like(folder), out = folder.path() / "out";
  fs::remove(model / "merges.txt");
  fs::remove(model / "vocab.txt");
  folder.write("models--x/blobs/merges", "merges");
  fs::create_symlink("../../blobs/merges", model / "merges.txt");
  fs::create_symlink("config.json", model / "vocab.txt");
  convert_model(model, out, {});
  EXPECT_EQ(contents(out / "merges.txt"), "merges");
  EXPECT_EQ(contents(out / "vocab.txt"), contents(model / "config.json"));
  EXPECT_FALSE(fs::is_symlink(out / "merges.txt"));

  fs::create_directory(model / "part");  // a model in a folder below the snapshot
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.is_regular_file())
      fs::create_symlink(fs::canonical(entry.path()), model / "part" / entry.path().filename());
  }
  convert_model(model / "part", folder.path() / "out-of-part", {});
  EXPECT_EQ(contents(folder.path() / "out-of-part" / "merges.txt"), "merges");
}

TEST(ConvertRefuses, LinksThatLeadOutOfTheFolder) {
  const TempFolder folder;
  const fs::path model = cache_like(folder), out = folder.path() / "out", secret = folder.write("secret", "x");
  const fs::path link = model / "merges.txt";
  for (const fs::path& target : {secret, fs::path("../../../secret"), fs::path("../../blobs/outside")}) {
    fs::remove(link);
    fs::remove(model / "../../blobs/outside");
    fs::create_symlink("../../secret", model / "../../blobs/outside");
    fs::create_symlink(target, link);
    expect_error([&] { convert_model(model, out, {}); }, {link.string(), fs::canonical(secret).string()});
    EXPECT_FALSE(fs::exists(out));
  }
  fs::remove(link);
  fs::create_symlink("nowhere", link);
  expect_error([&] { convert_model(model, out, {}); }, {link.string(), "nowhere"});
  // blobs/ beside a folder that is no snapshot is elsewhere
  fs::remove(link);
  fs::create_symlink("../../blobs/0", link);
  fs::rename(folder.path() / "models--x" / "snapshots", folder.path() / "models--x" / "mine");
  const fs::path moved = folder.path() / "models--x" / "mine" / "abc";
  expect_error([&] { convert_model(moved, out, {}); }, {(moved / "generation_config.json").string(), "outside"});
}

TEST(ConvertNotes, WhatTheUserShouldKnow) {
  const TempFolder folder;
  const std::vector<std::string> notes = convert_model(golden("mistral"), folder.path() / "m.gguf", {});
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_NE(notes[0].find("no tokenizer"), std::string::npos);
  EXPECT_NE(notes[1].find("sliding window"), std::string::npos);
}

}  // namespace
}  // namespace qkv::test

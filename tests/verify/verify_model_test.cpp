// Every family against recordings of transformers: the committed goldens, and the larger ones if present.
#include "verify/verify_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/file.h"
#include "base/temp_folder.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/safetensors_numbers.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Verdict = VerifyLine::Verdict;

std::string bad_lines(const VerifyReport& report) {
  std::string text;
  for (const VerifyLine& line : report.lines) {
    if (line.verdict != Verdict::bad) continue;
    text += line.name + ": NMSE " + std::to_string(line.nmse.value_or(-1) * 1e12) + "e-12, worst " +
            std::to_string(line.worst.value_or(-1) * 1e6) + "e-6; " + line.note + "\n";
  }
  return text;
}

// config.json with some keys changed, the same weights.
VerifyReport verify_patched(const fs::path& folder, const Json& patch, Precision precision,
                            const Kernels& kernels = kernels::best_table()) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  checkpoint.config.merge_patch(patch);
  checkpoint.spec = read_spec(Config(checkpoint.config, "config.json"));
  const Engine engine(kernels, {.threads = 1});
  return verify_model(checkpoint, engine, precision, folder);
}

class Family : public testing::TestWithParam<std::string> {};

TEST_P(Family, ComputesWhatTransformersComputesInFloat32) {
  for (const Kernels* table : kernels::all_tables()) {
    const VerifyReport report = verify_patched(test::golden(GetParam()), Json::object(), Precision::f32(), *table);
    EXPECT_TRUE(report.good()) << table->name << "\n" << bad_lines(report);
    EXPECT_GE(report.count(Verdict::good), 6);
  }
}

TEST_P(Family, StaysNearItInBf16) {
  for (const Kernels* table : kernels::all_tables()) {
    const VerifyReport report = verify_patched(test::golden(GetParam()), Json::object(), Precision::bf16(), *table);
    EXPECT_TRUE(report.good()) << table->name << "\n" << bad_lines(report);
  }
}

TEST_P(Family, ComputesItOnTheLargerRecordingToo) {
  const bool second = test::shared("golden2/" + GetParam()).has_value();
  QKV_NEED_SHARED(folder, (second ? "golden2/" : "golden/") + GetParam());
  for (const Kernels* table : test::fastest_tables()) {
    for (const Precision& precision : {Precision::f32(), Precision::bf16()}) {
      const VerifyReport report = verify_patched(folder, Json::object(), precision, *table);
      EXPECT_TRUE(report.good()) << table->name << "\n" << bad_lines(report);
    }
  }
}

// T5 does not scale its scores, so rounding is amplified. On the larger recording of t5_gated rounding the weights
// alone, with every sum in f32, leaves the logits farther off than bf16's bound: no pass with bf16 weights can be
// within it.
TEST(Verify, Bf16BoundIsWiderWhereRoundedWeightsAloneExceedIt) {
  QKV_NEED_SHARED(folder, "golden/t5_gated");
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const Engine engine(kernels::best_table(), {.threads = 1});
  const TempFolder temporary;
  const TensorNames names = hugging_face_names(checkpoint.spec);
  write_hugging_face(temporary.path() / "half", checkpoint.config, checkpoint.weights(engine.device()), names,
                     {.dtype = "BF16"});
  const auto logits = [&](const Checkpoint& from, Precision precision) {
    for (const VerifyLine& line : verify_model(from, engine, precision, folder).lines) {
      if (line.name == "logits") return line;
    }
    return VerifyLine{};
  };
  EXPECT_GT(logits(Checkpoint::open(temporary.path() / "half"), Precision::f32()).nmse.value(), 5e-4);
  const VerifyLine half = logits(checkpoint, Precision::bf16());
  EXPECT_GT(half.nmse.value(), 5e-4);
  EXPECT_LT(half.kl.value(), 1e-3) << "the other bound can be kept, and is";
  EXPECT_EQ(half.verdict, Verdict::good);
  EXPECT_NE(half.note.find("rounding the weights alone, in double: NMSE"), std::string::npos) << half.note;
  EXPECT_NE(half.note.find("allowed: NMSE"), std::string::npos) << half.note;
}

// What rounding costs is allowed for, and nothing else: mistakes in the same model are seen in bf16 too.
TEST(Verify, Bf16SeesMistakesWhereRoundingIsAllowedFor) {
  QKV_NEED_SHARED(folder, "golden/t5_gated");
  for (const Json& patch : {Json{{"layer_norm_epsilon", 0.1}}, Json{{"relative_attention_max_distance", 20}},
                            Json{{"dense_act_fn", "silu"}, {"feed_forward_proj", "gated-silu"}}}) {
    EXPECT_FALSE(verify_patched(folder, patch, Precision::bf16()).good()) << patch.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Family, testing::ValuesIn(test::golden_models()),
                         [](const auto& tested) { return tested.param; });

TEST(Verify, KnowsAllFamilies) {
  EXPECT_EQ(test::golden_models().size(), 47U);
}

// A small mistake in the config must be detected.
struct Mistake {
  std::string folder;
  Json patch;
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.folder << " with " << mistake.patch.dump();
}
class Verify : public testing::TestWithParam<Mistake> {};

TEST_P(Verify, SeesAMistake) {
  const VerifyReport report = verify_patched(test::golden(GetParam().folder), GetParam().patch, Precision::f32());
  EXPECT_FALSE(report.good()) << GetParam().folder << " with " << GetParam().patch.dump();
}

INSTANTIATE_TEST_SUITE_P(
    Of, Verify,
    testing::Values(
        Mistake{"llama", {{"rms_norm_eps", 1e-5}}}, Mistake{"gpt2", {{"layer_norm_epsilon", 1e-6}}},
        Mistake{"llama", {{"rope_parameters", {{"rope_theta", 10001.0}}}}}, Mistake{"mistral", {{"sliding_window", 9}}},
        Mistake{"gemma2", {{"sliding_window", 7}}}, Mistake{"gemma2", {{"final_logit_softcapping", 31.0}}},
        Mistake{"gemma3", {{"query_pre_attn_scalar", 17}}}, Mistake{"deepseek_v3", {{"routed_scaling_factor", 2.49}}},
        Mistake{"deepseek_v3", {{"norm_topk_prob", false}}}, Mistake{"deepseek_v3", {{"topk_group", 1}}},
        Mistake{"qwen3_moe", {{"norm_topk_prob", false}}}, Mistake{"qwen3_moe", {{"num_experts_per_tok", 3}}},
        Mistake{"deepseek_yarn", {{"rope_parameters", {{"mscale_all_dim", 0.81}}}}},
        Mistake{"qwen2_yarn", {{"rope_parameters", {{"factor", 4.1}}}}},
        Mistake{"gpt_neox", {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}},
        Mistake{"gpt_neox", {{"use_parallel_residual", false}}}, Mistake{"gpt_oss", {{"sliding_window", 7}}},
        Mistake{"bert", {{"layer_norm_eps", 1e-6}}}, Mistake{"bert", {{"hidden_act", "gelu_new"}}},
        Mistake{"marian", {{"scale_embedding", false}}}, Mistake{"t5", {{"relative_attention_max_distance", 20}}},
        Mistake{"t5", {{"scale_decoder_outputs", false}}},
        // The second set: norms and where they are, positions, multipliers, windows, experts.

        Mistake{"opt", {{"activation_function", "gelu"}}}, Mistake{"bloom", {{"layer_norm_epsilon", 1e-4}}},
        Mistake{"gptj", {{"rotary_dim", 8}}}, Mistake{"gptj", {{"activation_function", "gelu"}}},
        Mistake{"phi", {{"rope_parameters", {{"partial_rotary_factor", 1.0}}}}},
        Mistake{"phi", {{"hidden_act", "gelu"}}}, Mistake{"falcon", {{"alibi", true}}},
        Mistake{"falcon", {{"rope_parameters", {{"rope_theta", 20000.0}}}}},
        Mistake{"starcoder2", {{"sliding_window", 7}}}, Mistake{"starcoder2", {{"norm_epsilon", 1e-4}}},
        Mistake{"stablelm", {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}},
        Mistake{"granite", {{"residual_multiplier", 1.0}}}, Mistake{"granite", {{"logits_scaling", 2.01}}},
        Mistake{"granite", {{"attention_multiplier", 0.21}}}, Mistake{"granite", {{"embedding_multiplier", 1.0}}},
        Mistake{"smollm3", {{"no_rope_layers", {1, 1, 1, 0}}}}, Mistake{"glm4", {{"rms_norm_eps", 1e-5}}},
        Mistake{"glm4", {{"rope_parameters", {{"partial_rotary_factor", 1.0}}}}},
        Mistake{"glm4_moe", {{"routed_scaling_factor", 1.0}}}, Mistake{"glm4_moe", {{"norm_topk_prob", false}}},
        Mistake{"cohere2", {{"logit_scale", 0.2501}}}, Mistake{"cohere2", {{"sliding_window", 7}}},
        Mistake{
            "cohere2",
            {{"layer_types", {"sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"}}}},
        Mistake{"olmo3", {{"sliding_window", 9}}},
        Mistake{"olmo3", {{"rope_parameters", {{"sliding_attention", {{"rope_theta", 10000.0}}}}}}},
        Mistake{"ernie4_5", {{"rope_parameters", {{"rope_theta", 400000.0}}}}},
        Mistake{"exaone4", {{"sliding_window", 0}}}, Mistake{"nemotron", {{"hidden_act", "relu"}}},
        Mistake{"nemotron", {{"norm_eps", 1e-4}}}, Mistake{"llama4", {{"attention_chunk_size", 7}}},
        Mistake{"llama4", {{"use_qk_norm", false}}}, Mistake{"llama4", {{"floor_scale", 8}}},
        Mistake{"llama4", {{"no_rope_layers", {1, 1, 0, 0}}}}, Mistake{"qwen2_moe", {{"norm_topk_prob", true}}},
        Mistake{"qwen2_moe", {{"num_experts_per_tok", 1}}}, Mistake{"mbart", {{"normalize_before", false}}},
        Mistake{"mbart", {{"scale_embedding", false}}}, Mistake{"m2m_100", {{"position_offset", 2}}},
        Mistake{"m2m_100", {{"normalize_before", false}}}, Mistake{"pegasus", {{"scale_embedding", false}}},
        Mistake{"pegasus", {{"normalize_before", false}}}, Mistake{"roberta", {{"layer_norm_eps", 1e-6}}},
        Mistake{"modernbert", {{"local_attention", 6}}},
        Mistake{"modernbert", {{"rope_parameters", {{"sliding_attention", {{"rope_theta", 160000.0}}}}}}},
        Mistake{"modernbert", {{"hidden_activation", "gelu_new"}}}),
    [](const auto& tested) { return std::to_string(tested.index) + "_" + tested.param.folder; });

// The recording's distance from our doubles is no larger than its own rounding error.
TEST(Verify, AgreesInDouble) {
  for (const char* name : {"t5_gated", "llama", "mixtral"}) {
    const VerifyReport report =
        verify_patched(test::golden(name), Json::object(), Precision::f64(), kernels::ref::table());
    for (const VerifyLine& line : report.lines) {
      EXPECT_LE(line.nmse.value_or(0), 4e-12) << name << " " << line.name << " worst " << *line.worst;
    }
  }
}

TEST(Stories, AreWordForWordTheTokensThatWerePublished) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const std::string text = read_file(folder / "EXPECTED.md", 1 << 20);
  const std::string mark = "The 160 ids after <s>:";
  std::istringstream numbers(text.substr(text.find(mark) + mark.size()));
  std::vector<int32_t> expected;
  for (int32_t id = 0; numbers >> id;) expected.push_back(id);
  ASSERT_EQ(expected.size(), 160U);

  const std::unique_ptr<Model> model = Checkpoint::open(folder).model();
  const Engine engine(kernels::best_table(), {.threads = 1});
  std::vector<int32_t> ids{1};
  while (ids.size() < 161) {
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    const Rows rows = Rows::batch(cx, 1, static_cast<int64_t>(ids.size()));
    const auto logits = test::to_host(model->logits(cx, {.ids = cx.upload(ids), .rows = &rows}));
    const auto last = logits.end() - model->spec().vocabulary;
    ids.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
  }
  EXPECT_EQ(std::vector<int32_t>(ids.begin() + 1, ids.end()), expected);
}

// In bf16 the logits of a row may lie within all distances and still have another first guess, where the recording's is
// clear: that is a mistake, not a rounding. Planted in the recording.
TEST(Verify, AnotherClearGuessIsBadInBf16) {
  const TempFolder folder;
  fs::copy(test::golden("llama"), folder.path() / "llama");
  const fs::path file = folder.path() / "llama" / "io.safetensors";
  fs::remove(file);
  const Safetensors recorded = Safetensors::open(test::golden("llama") / "io.safetensors");
  std::vector<OutgoingTensor> tensors;
  for (const StoredTensor& entry : recorded.entries()) {
    if (entry.name != "logits") {
      tensors.push_back(outgoing(entry));
      continue;
    }
    std::vector<float> logits = recorded_floats(entry);
    const auto width = static_cast<size_t>(entry.shape.back());
    double power = 0, sum = 0;
    for (const float x : logits) {
      sum += static_cast<double>(x);
      power += static_cast<double>(x) * static_cast<double>(x);
    }
    const auto n = static_cast<double>(logits.size());
    const double deviation = std::sqrt(power / n - sum / n * sum / n);
    // Of the rows with a clear first guess the one whose second is nearest: the two change places.
    float nearest = INFINITY;
    std::pair<size_t, size_t> places;
    for (size_t row = 0; row < logits.size(); row += width) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row);
      const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width));
      auto second = begin == best ? begin + 1 : begin;
      for (auto at = begin; at != begin + static_cast<std::ptrdiff_t>(width); ++at) {
        if (at != best && *at > *second) second = at;
      }
      const float margin = *best - *second;
      if (static_cast<double>(margin) <= 0.11 * deviation || margin >= nearest) continue;
      nearest = margin;
      places = {static_cast<size_t>(best - logits.begin()), static_cast<size_t>(second - logits.begin())};
    }
    ASSERT_LT(nearest, INFINITY);
    std::swap(logits[places.first], logits[places.second]);
    const auto bytes = std::as_bytes(std::span(logits));
    tensors.push_back({entry.name, "F32", entry.shape,
                       [kept = std::vector<std::byte>(bytes.begin(), bytes.end())](ByteSink sink) { sink(kept); }});
  }
  write_safetensors(file, tensors, recorded.metadata());
  const VerifyReport report = verify_patched(folder.path() / "llama", Json::object(), Precision::bf16());
  const auto line = std::find_if(report.lines.begin(), report.lines.end(),
                                 [](const VerifyLine& one) { return one.name == "logits"; });
  ASSERT_NE(line, report.lines.end());
  EXPECT_LE(*line->nmse, 5e-4) << "near enough";
  EXPECT_LE(*line->kl, 1e-3);
  EXPECT_EQ(line->missed, 1);
  EXPECT_EQ(line->verdict, Verdict::bad) << line->note;
}

}  // namespace
}  // namespace qkv

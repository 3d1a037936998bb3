// Model folders in q8 and q4: writing, loading and errors.
#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/file.h"
#include "data/text_windows.h"
#include "infer/text_distance.h"
#include "io/safetensors.h"
#include "model/checkpoint/convert.h"
#include "model/quantized/quantize_support.h"
#include "model/quantized/quantized_model.h"
#include "model/quantized/quantized_names.h"
#include "verify/verify_model.h"

namespace qkv::test {
namespace quantize_model_test {

namespace fs = std::filesystem;

const Engine& engine() {
  static const Engine made(kernels::best_table(), {.threads = 2});
  return made;
}

QuantizeReport quantize(const fs::path& from, const fs::path& to, Format format) {
  return quantize_model(Checkpoint::open(from), to, engine(), {.to = format, .copied = companion_files(from)});
}

// q8: half a step of max / 127, and what the bf16 scale is off by. q4: no more square error than the scale has that
// makes the largest number -8.
void expect_rounded(std::span<const double> was, std::span<const double> is, Block block) {
  double extreme = 0, error = 0, plain = 0;
  for (const double v : was) extreme = std::abs(v) > std::abs(extreme) ? v : extreme;
  const double step = round_to(DType::bf16, extreme / -8);
  for (size_t i = 0; i < was.size(); ++i) {
    if (block == Block::q8) {
      EXPECT_NEAR(is[i], was[i], std::abs(extreme) / 127 * 0.76);
    }
    const double rounded = step == 0 ? 0 : step * std::clamp(std::nearbyint(was[i] / step), -8.0, 7.0);
    plain += (was[i] - rounded) * (was[i] - rounded);
    error += (was[i] - is[i]) * (was[i] - is[i]);
  }
  if (block == Block::q4) {
    EXPECT_LE(error, plain * 1.0001);
  }
}

struct Case {
  const char* family;
  Block block;
  int in_panels;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << ' ' << name_of(c.block);
}

std::string name_of_case(const testing::TestParamInfo<Case>& i) {
  return std::string(i.param.family) + "_" + name_of(i.param.block);
}

class QuantizedModel : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, QuantizedModel,
                         testing::Values(Case{"llama", Block::q8, 14}, Case{"llama", Block::q4, 14},
                                         Case{"gpt2", Block::q4, 13}, Case{"mixtral", Block::q8, 14},
                                         Case{"mixtral", Block::q4, 14}, Case{"deepseek_v3", Block::q4, 16},
                                         Case{"gemma3", Block::q4, 19}, Case{"gpt_oss", Block::q8, 14},
                                         Case{"t5", Block::q8, 33}, Case{"bart", Block::q4, 33},
                                         Case{"bert", Block::q8, 14}),
                         name_of_case);

TEST_P(QuantizedModel, ComesBackAsItWasRounded) {
  const TempFolder temp;
  const fs::path source = golden(GetParam().family), folder = temp.path() / "q";
  const Format to(GetParam().block, 32);
  const QuantizeReport report = quantize(source, folder, to);
  const Checkpoint before = Checkpoint::open(source), after = Checkpoint::open(folder);
  const std::unique_ptr<Model> kept = after.model(), decoded = after.model(cpu_device(), BlockWeights::decoded);
  EXPECT_EQ(expect_same_numbers(kept->weights(), decoded->weights()), GetParam().in_panels);

  const Weights exact = before.weights(cpu_device());
  for (const WeightSpec& weight : weight_list(before.spec)) {
    const Param& param = kept->weights().at(weight.name);
    const Numbers was = numbers_in(exact.at(weight.name)), is = numbers_in(param);
    if (param.format().plain()) {
      EXPECT_EQ(is, was) << weight.name;
      continue;
    }
    EXPECT_EQ(reinterpret_cast<uintptr_t>(param.master().data()) % 64, 0U) << weight.name;
    EXPECT_TRUE(after.file->find(weight.name)->bytes.data() == param.master().data()) << weight.name << " was copied";
    const bool shown = weight.part == Part::embedding || weight.part == Part::head;
    EXPECT_EQ(param.format(), Format(shown ? Block::q8 : GetParam().block, 32)) << weight.name;
    for (size_t g = 0; g < was.size(); g += 32) {
      expect_rounded(std::span(was).subspan(g, 32), std::span(is).subspan(g, 32), param.format().block);
      if (HasFailure()) FAIL() << weight.name << " from " << g;
    }
  }
  EXPECT_LE(nmse(logits_of(*kept), logits_of(*decoded)), activation_bound(after.spec));
  expect_rows_stand_alone(*kept);

  EXPECT_EQ(report.bytes_after, static_cast<int64_t>([&] {
              size_t bytes = 0;
              for (const StoredTensor& entry : after.file->entries()) {
                bytes += entry.name == kPaddingTensor ? 0 : entry.bytes.size();
              }
              return bytes;
            }()));
}

// Rows of several groups, and the largest: 256 numbers.
TEST(QuantizedFolder, OfEveryGroup) {
  QKV_NEED_SHARED(shared_folder, "gguf");
  const Checkpoint source = Checkpoint::open(shared_folder / "tiny-f32.gguf");
  for (const Block block : {Block::q8, Block::q4}) {
    double before = 0;
    for (const int32_t group : {32, 64, 128, 256, 0}) {
      SCOPED_TRACE(format_text(Format(block, group)));
      const TempFolder temp;
      const QuantizeReport report = quantize_model(source, temp.path() / "q", engine(), {.to = Format(block, group)});
      const std::unique_ptr<Model> kept = Checkpoint::open(temp.path() / "q").model();
      const std::unique_ptr<Model> decoded =
          Checkpoint::open(temp.path() / "q").model(cpu_device(), BlockWeights::decoded);
      EXPECT_EQ(expect_same_numbers(kept->weights(), decoded->weights()), 15 + 1);
      EXPECT_LE(nmse(logits_of(*kept), logits_of(*decoded)), activation_bound(source.spec));
      expect_rows_stand_alone(*kept);
      // Normal numbers: less than the 0.8 % of q8 and 11 % of q4 with one scale to 2048 of them, more where a group is
      // larger.
      const double error = report.kinds.front().mean;
      EXPECT_GT(error, before);
      EXPECT_LE(error, block == Block::q8 ? 0.0083 : 0.11);
      if (group != 256) before = error;  // as good as a row: rows have 256
    }
  }
}

TEST(QuantizedFolder, BecomesAHuggingFaceFolderAgain) {
  const TempFolder temp;
  const auto q = temp.path() / "q", back = temp.path() / "back";
  quantize(golden("gemma3"), q, Format(Block::q8, 32));
  convert_model(q, back, {.dtype = "F32"});
  EXPECT_FALSE(is_quantized(Checkpoint::open(back).config));
  expect_same_weights(Checkpoint::open(q).weights(cpu_device()), Checkpoint::open(back).weights(cpu_device()));
}

// Norms of a GGUF may be 1 + w: the config key for that must be kept.
TEST(QuantizedFolder, CanComeFromGguf) {
  const TempFolder temp;
  convert_model(golden("gemma3"), temp.path() / "m.gguf", {.dtype = "F32"});
  quantize_model(Checkpoint::open(temp.path() / "m.gguf"), temp.path() / "a", engine(), {.to = Format(Block::q4, 32)});
  quantize(golden("gemma3"), temp.path() / "b", Format(Block::q4, 32));
  const Numbers a = logits_of(*Checkpoint::open(temp.path() / "a").model()),
                b = logits_of(*Checkpoint::open(temp.path() / "b").model());
  EXPECT_LE(nmse(a, b), 1e-9);
}

TEST(QuantizedFolder, VerifyShowsDistancesWithoutBounds) {
  const TempFolder temp;
  quantize(golden("llama"), temp.path() / "q", Format(Block::q8, 32));
  fs::copy(golden("llama") / "io.safetensors", temp.path() / "q");
  const VerifyReport report =
      verify_model(Checkpoint::open(temp.path() / "q"), engine(), Precision::f32(), temp.path() / "q");
  EXPECT_EQ(report.count(VerifyLine::Verdict::bad), 0);
  EXPECT_FALSE(report.good()) << "nothing was held to a bound";
  const auto logits = std::ranges::find(report.lines, "logits", &VerifyLine::name);
  ASSERT_NE(logits, report.lines.end());
  EXPECT_EQ(logits->verdict, VerifyLine::Verdict::shown);
  EXPECT_GT(*logits->nmse, 1e-8);
  EXPECT_NE(logits->note.find("KL"), std::string::npos);
}

TEST(QuantizedFolder, IsRefusedAsASourceOrATarget) {
  const TempFolder temp;
  const auto q = temp.path() / "q";
  quantize(golden("llama"), q, Format(Block::q8, 32));
  expect_error([&] { quantize(q, temp.path() / "again", Format(Block::q4, 32)); }, {"quantised already"});
  expect_error([&] { quantize(golden("llama"), q, Format(Block::q4, 32)); }, {"already"});
  expect_error([&] { quantize(golden("llama"), temp.path() / "x", Format(DType::bf16)); }, {"bf16"});
  EXPECT_FALSE(fs::exists(temp.path() / "x"));
}

TEST(QuantizedFolder, StoppingLeavesNothing) {
  const TempFolder temp;
  const Checkpoint source = Checkpoint::open(golden("llama"));
  expect_error(
      [&] {
        quantize_model(source, temp.path() / "q", engine(),
                       {.to = Format(Block::q8, 32), .copied = {}, .progress = [](int64_t done, int64_t of) {
                          QKV_CHECK(done < of / 2, "stopped here", Hint("go on"));
                        }});
      },
      {"stopped here"});
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

struct Broken {
  const char* name;
  std::function<void(Json& config)> change;
  std::vector<std::string_view> said;
};
void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

Json& listed(Json& config) {
  return config["quantization_config"]["weights"];
}

class BrokenFolder : public testing::TestWithParam<Broken> {};
INSTANTIATE_TEST_SUITE_P(
    All, BrokenFolder,
    testing::Values(
        Broken{"unknown_format", [](Json& c) { listed(c)["head"] = "q5/32"; }, {"'head'", "'q5/32'", "no format"}},
        Broken{"absurd_group", [](Json& c) { listed(c)["head"] = "q4/48"; }, {"'q4/48'"}},
        Broken{"format_is_a_number", [](Json& c) { listed(c)["head"] = 4; }, {"must be text but is 4"}},
        Broken{
            "unknown_weight", [](Json& c) { listed(c)["layers.9.attn.q"] = "q8/32"; }, {"layers.9.attn.q", "no such"}},
        Broken{"a_norm", [](Json& c) { listed(c)["norm_final"] = "q8/32"; }, {"norm_final", "no such weight"}},
        Broken{"no_list", [](Json& c) { c["quantization_config"].erase("weights"); }, {"has no object weights"}},
        Broken{"other_block", [](Json& c) { listed(c)["layers.0.attn.q"] = "q4/32"; }, {"but the config says"}},
        Broken{"group_does_not_divide", [](Json& c) { listed(c)["layers.0.attn.q"] = "q8/256"; }, {"rows have"}},
        Broken{"not_listed", [](Json& c) { listed(c).erase("layers.0.attn.q"); }, {"layers.0.attn.q", "U8"}},
        Broken{"listed_but_plain",
               [](Json& c) {
                 c["quantization_config"]["weights"] = {{"layers.0.attn.q", "q8/32"}};
               },
               {"U8"}}),
    [](const auto& i) { return i.param.name; });

TEST_P(BrokenFolder, IsRefusedInWords) {
  const TempFolder temp;
  const auto q = temp.path() / "q";
  quantize(golden("llama"), q, Format(Block::q8, 32));
  Json config = parse_json(read_file(q / "config.json", 1 << 20), "config.json");
  GetParam().change(config);
  const std::string text = config.dump();
  write_file_atomic(q / "config.json", std::as_bytes(std::span(text)));
  for (const std::string_view part : GetParam().said) expect_error([&] { Checkpoint::open(q); }, {part});
}

TEST(TextDistance, OfAModelToItselfIsNothingAndOfAnotherIsItsDefinition) {
  const TempFolder temp;
  quantize(golden("llama"), temp.path() / "q", Format(Block::q4, 32));
  const auto a = Checkpoint::open(golden("llama")).model(), b = Checkpoint::open(temp.path() / "q").model();
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 12; ++i) ids.push_back((i * 37 + 5) % static_cast<int32_t>(a->spec().vocabulary));
  const TextDistance none = distance_on_texts(*a, *a, engine(), cut_into_windows(ids, {.length = 5}));
  EXPECT_EQ(none.tokens, 12);
  EXPECT_EQ(none.kl, 0);
  EXPECT_EQ(none.agree, 1);

  // The same in one window, from the logits as they are.
  const Numbers p = logits_of(*a), q = logits_of(*b);
  const auto width = static_cast<size_t>(a->spec().vocabulary);
  double kl = 0, surprise = 0;
  for (size_t r = 0; r < 12; ++r) {
    double zp = 0, zq = 0;
    for (size_t v = 0; v < width; ++v) zp += std::exp(p[r * width + v]), zq += std::exp(q[r * width + v]);
    for (size_t v = 0; v < width; ++v) {
      const double pv = std::exp(p[r * width + v]) / zp, qv = std::exp(q[r * width + v]) / zq;
      kl += pv * std::log(pv / qv) / 12;
    }
    if (r < 11) surprise -= std::log(std::exp(q[r * width + static_cast<size_t>(ids[r + 1])]) / zq) / 11;
  }
  const TextDistance d = distance_on_texts(*a, *b, engine(), std::vector<TokenText>{{.ids = ids}});
  EXPECT_NEAR(d.kl, kl, 1e-9 + 1e-6 * kl);
  EXPECT_GT(d.kl, 0);
  EXPECT_NEAR(*d.perplexity_after, std::exp(surprise), 1e-4 * std::exp(surprise));
}

}  // namespace quantize_model_test
}  // namespace qkv::test

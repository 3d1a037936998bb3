// What every family writes against what transformers wrote: the committed goldens, and the larger ones where they are.
#include "verify/verify_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "base/temp_folder.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "support/pass.h"
#include "support/safetensors_numbers.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Verdict = VerifyLine::Verdict;

VerifyReport tokens_of(const fs::path& folder, Precision precision, const Kernels& kernels = kernels::best_table()) {
  const Engine engine(kernels, {.threads = 1});
  VerifyReport report;
  verify_tokens(report, Checkpoint::open(folder), engine, precision, folder);
  return report;
}

std::string said(const VerifyReport& report) {
  std::string text;
  for (const VerifyLine& line : report.lines) text += line.name + ": " + line.note + "\n";
  return text;
}

void expect_identical(const fs::path& folder, const Kernels& kernels = kernels::best_table(),
                      Precision precision = Precision::f32()) {
  const VerifyReport report = tokens_of(folder, precision, kernels);
  EXPECT_EQ(report.count(Verdict::good), static_cast<int64_t>(report.lines.size())) << kernels.name << "\n"
                                                                                    << said(report);
  std::set<std::string> names, recorded;
  for (const VerifyLine& line : report.lines) names.insert(line.name);
  const Safetensors io = Safetensors::open(folder / "io.safetensors");
  for (const StoredTensor& entry : io.entries()) {
    if (entry.name.starts_with("generate_")) recorded.insert(entry.name);
  }
  EXPECT_EQ(names, recorded);
}

class Texts : public testing::TestWithParam<std::string> {};

TEST_P(Texts, AreThoseOfTransformersInFloat32) {
  for (const Kernels* table : kernels::all_tables()) expect_identical(test::golden(GetParam()), *table);
}

TEST_P(Texts, AreThoseOfTheLargerRecordingToo) {
  QKV_NEED_SHARED(folder, "golden/" + GetParam());
  expect_identical(folder);
}

TEST_P(Texts, AreShownInBf16) {
  const VerifyReport report = tokens_of(test::golden(GetParam()), Precision::bf16());
  EXPECT_EQ(report.count(Verdict::bad), 0) << said(report);
}

INSTANTIATE_TEST_SUITE_P(All, Texts, testing::ValuesIn(test::golden_models()),
                         [](const auto& tested) { return tested.param; });

TEST(VerifyTokens, LooksAtGreedyAndBeamsOfBothKindsOfModels) {
  std::map<std::string, int64_t> count;
  for (const std::string& name : test::golden_models()) {
    const Safetensors io = Safetensors::open(test::golden(name) / "io.safetensors");
    for (const StoredTensor& entry : io.entries()) {
      if (entry.name.starts_with("generate_")) ++count[entry.name];
    }
  }
  const std::map<std::string, int64_t> right = {
      {"generate_greedy", 23}, {"generate_beam4", 9}, {"generate_beam4_lp2", 9}};
  EXPECT_EQ(count, right);
}

// Every text of a golden, with some bytes of its files changed.
VerifyReport damaged(const std::string& name, const std::string& file, const std::function<void(std::string&)>& change,
                     Precision precision = Precision::f32()) {
  const TempFolder copy;
  fs::copy(test::golden(name), copy.path() / name, fs::copy_options::recursive);
  std::string bytes = read_file(copy.path() / name / file, 1 << 24);
  change(bytes);
  copy.write(fs::path(name) / file, bytes);
  return tokens_of(copy.path() / name, precision);
}

void replace(std::string& bytes, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  ASSERT_NE(bytes.find(from), std::string::npos);
  bytes.replace(bytes.find(from), from.size(), to);
}

TEST(VerifyTokens, SeesOtherTexts) {
  for (const char* name : {"llama", "marian"}) {
    const Safetensors io = Safetensors::open(test::golden(name) / "io.safetensors");
    const std::byte* end = nullptr;
    for (const StoredTensor& entry : io.entries()) end = std::max(end, entry.bytes.data() + entry.bytes.size());
    for (const char* text : {"generate_greedy", "generate_beam4", "generate_beam4_lp2"}) {
      const std::byte* last = io.at(text).bytes.data() + io.at(text).bytes.size() - sizeof(int64_t);
      const auto from_end = static_cast<size_t>(end - last);
      const auto change = [=](std::string& bytes) { bytes[bytes.size() - from_end] ^= 1; };
      for (const bool half : {false, true}) {
        const VerifyReport report =
            damaged(name, "io.safetensors", change, half ? Precision::bf16() : Precision::f32());
        for (const VerifyLine& line : report.lines) {
          if (line.name != text) continue;
          EXPECT_EQ(line.verdict, half ? Verdict::shown : Verdict::bad) << name << " " << text;
          EXPECT_TRUE(line.note.starts_with("tokens differ from place")) << line.note;
        }
        EXPECT_EQ(report.count(Verdict::bad), half ? 0 : 1) << said(report);
      }
    }
  }
}

TEST(VerifyTokens, SeesAMistakeInTheModel) {
  const auto change = [](std::string& config) {
    replace(config, "\"rope_theta\": 10000.0", "\"rope_theta\": 10.0000");
  };
  EXPECT_EQ(damaged("llama", "config.json", change).count(Verdict::bad), 3);
}

TEST(VerifyTokens, SaysWhatItDoesNotKnow) {
  const auto rename = [](std::string& bytes) { replace(bytes, "generate_greedy", "generate_freely"); };
  const VerifyReport report = damaged("llama", "io.safetensors", rename);
  EXPECT_EQ(report.count(Verdict::bad), 1);
  EXPECT_NE(said(report).find("generate_freely: recorded, but this model writes no such text"), std::string::npos);
}

TEST(VerifyTokens, SaysWhereLogitsAreNoNumbers) {
  const auto nans = [](std::string& bytes) { bytes.replace(bytes.size() - 8, 8, 8, '\xff'); };  // of the last norm
  const VerifyReport report = damaged("llama", "model.safetensors", nans);
  EXPECT_EQ(report.count(Verdict::bad), 3);
  EXPECT_NE(said(report).find("generate_greedy: the logit of token 0 at position 21 is "), std::string::npos)
      << said(report);
}

TEST(VerifyTokens, AgreesInDouble) {
  for (const char* name : {"t5_gated", "llama", "mixtral"}) {
    expect_identical(test::golden(name), kernels::ref::table(), Precision::f64());
  }
}

}  // namespace
}  // namespace qkv

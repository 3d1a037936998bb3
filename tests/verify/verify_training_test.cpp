// Four recorded training runs, from PyTorch: losses, gradients and the weights at the end.
#include "verify/verify_training.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/temp_folder.h"
#include "io/safetensors.h"
#include "kernels/tables.h"
#include "support/pass.h"

namespace qkv {
namespace {

class Trace : public testing::TestWithParam<const char*> {
 protected:
  static void expect_good(const std::filesystem::path& folder) {
    for (const Kernels* table : test::fastest_tables()) {
      const Engine engine(*table, {.threads = 2});
      VerifyReport report;
      verify_training(report, Checkpoint::open(folder), engine, folder);
      EXPECT_GE(report.lines.size(), 4U);
      for (const VerifyLine& line : report.lines) {
        EXPECT_EQ(line.verdict, VerifyLine::Verdict::good)
            << table->name << " " << line.name << " " << line.note << " " << line.nmse.value_or(0);
      }
    }
  }
};

TEST_P(Trace, IsReplayed) {
  expect_good(test::golden(GetParam()));
}

TEST_P(Trace, OfTheLargerRecordingIsReplayedToo) {
  QKV_NEED_SHARED(folder, std::string("golden/") + GetParam());
  expect_good(folder);
}

// A recording whose gradient norms are 1 % too large from one step on.
class Doctored : public testing::TestWithParam<const char*> {};

TEST_P(Doctored, AGradientNormOnePercentOffIsBad) {
  const TempFolder temp;
  const std::filesystem::path original = test::golden(GetParam()), folder = temp.path() / "model";
  std::filesystem::copy(original, folder);
  const Safetensors recorded = Safetensors::open(original / "train.safetensors");
  std::vector<OutgoingTensor> tensors;
  int64_t changed = 0;
  for (const StoredTensor& entry : recorded.entries()) {
    std::vector<std::byte> bytes(entry.bytes.begin(), entry.bytes.end());
    if (entry.name == "grad_norm" || entry.name == "grad_norm.0") {
      float norm = 0;
      std::memcpy(&norm, bytes.data(), sizeof norm);
      norm *= 1.01F;
      std::memcpy(bytes.data(), &norm, sizeof norm);
      ++changed;
    }
    tensors.push_back({.name = entry.name, .dtype = entry.dtype, .shape = entry.shape, .give = [bytes](ByteSink sink) {
                         sink(bytes);
                       }});
  }
  ASSERT_EQ(changed, 1);
  std::filesystem::remove(folder / "train.safetensors");
  write_safetensors(folder / "train.safetensors", tensors, recorded.metadata());
  const Engine engine(kernels::best_table(), {.threads = 2});
  VerifyReport report;
  verify_training(report, Checkpoint::open(folder), engine, folder);
  for (const VerifyLine& line : report.lines) {
    EXPECT_EQ(line.verdict, line.name == "train grad_norm" ? VerifyLine::Verdict::bad : VerifyLine::Verdict::good)
        << line.name << ": " << line.note;
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, Doctored, testing::Values("gpt2", "marian"),
                         [](const auto& family) { return std::string(family.param); });

INSTANTIATE_TEST_SUITE_P(Goldens, Trace, testing::Values("gpt2", "llama", "mixtral", "marian"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace qkv

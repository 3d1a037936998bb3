// Four recorded training runs, from PyTorch: losses, gradients and the weights at the end.
#include "verify/verify_training.h"

#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Goldens, Trace, testing::Values("gpt2", "llama", "mixtral", "marian"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace qkv

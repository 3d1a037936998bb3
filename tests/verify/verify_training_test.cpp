// Recorded training runs, from PyTorch: losses, gradients and the weights at the end. tests/verify/marian_trace is made by
// scripts/make_training_trace.py: at its last step the input of one ReLU is within 2e-7 of zero, and negative in PyTorch's
// f32 alone. There the recorded gradient norm is 4e-5 off, the same in f64 is recorded beside it.
#include "verify/verify_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
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

namespace fs = std::filesystem;
using Verdict = VerifyLine::Verdict;

fs::path near_zero() {
  return test::golden("").parent_path().parent_path() / "verify" / "marian_trace";
}

VerifyReport replayed(const fs::path& folder, const Kernels& table = kernels::best_table(),
                      const Json& patch = Json::object()) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  checkpoint.config.merge_patch(patch);
  checkpoint.spec = read_spec(Config(checkpoint.config, "config.json"));
  const Engine engine(table, {.threads = 1});
  VerifyReport report;
  verify_training(report, checkpoint, engine, folder);
  return report;
}

Verdict verdict_of(const VerifyReport& report, const std::string& name) {
  for (const VerifyLine& line : report.lines) {
    if (line.name == "train " + name) return line.verdict;
  }
  return Verdict::shown;
}

// Whichever side of zero our f32 is on.
TEST(TraceNearZero, IsJudgedByATrainingWhollyInDouble) {
  for (const Kernels* table : kernels::all_tables()) {
    const VerifyReport report = replayed(near_zero(), *table);
    for (const char* name : {"f64.loss", "f64.grad_norm", "loss", "grad_norm", "gradients", "final weights"}) {
      EXPECT_EQ(verdict_of(report, name), Verdict::good) << table->name << " " << name;
    }
  }
}

// A copy of a recorded training with element `at` of one tensor changed.
template <class Number>
void change(const fs::path& from, const fs::path& to, const std::string& tensor, size_t at, double factor) {
  fs::copy(from, to);
  std::string bytes = read_file((to / "train.safetensors").string(), 1 << 24);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Json entries = parse_json(std::string_view(bytes).substr(sizeof header, header), "train.safetensors");
  char* where = bytes.data() + sizeof header + header + entries.at(tensor).at("data_offsets").at(0).get<size_t>() +
                at * sizeof(Number);
  Number value = 0;
  std::memcpy(&value, where, sizeof value);
  value = static_cast<Number>(static_cast<double>(value) * factor);
  std::memcpy(where, &value, sizeof value);
  fs::remove(to / "train.safetensors");
  write_file_atomic(to / "train.safetensors", std::as_bytes(std::span(bytes)));
}

TEST(TraceNearZero, SeesWhatIsWrongInARecording) {
  const std::string weight = "model.decoder.layers.0.fc2.weight";
  struct Wrong {
    fs::path folder;
    std::string tensor;
    size_t at;
    double factor;
    std::string line;
  };
  const Wrong all[] = {
      {near_zero(), "grad_norm", 3, 1.01, "grad_norm"},  // beyond what rounding does
      {near_zero(), "grad_norm", 19, 1.01, "grad_norm"},
      {near_zero(), "grad_norm", 3, 0.999, "grad_norm"},
      {near_zero(), "grad_norm", 0, NAN, "grad_norm"},
      {near_zero(), "loss", 19, 1.00003, "loss"},
      {near_zero(), "loss", 4, NAN, "loss"},
      {near_zero(), "grad_after_clip." + weight, 5, 1.1, "gradients"},
      {near_zero(), "grad_after_clip." + weight, 5, NAN, "gradients"},
      {near_zero(), "final.model.decoder.layers.0.final_layer_norm.weight", 5, 1.01, "final weights"},
      {test::golden("llama"), "grad_after_clip.model.layers.0.mlp.down_proj.weight", 5, NAN, "gradients"}};
  for (const Wrong& wrong : all) {
    const TempFolder temp;
    change<float>(wrong.folder, temp.path() / "changed", wrong.tensor, wrong.at, wrong.factor);
    EXPECT_EQ(verdict_of(replayed(temp.path() / "changed"), wrong.line), Verdict::bad)
        << wrong.tensor << "[" << wrong.at << "] times " << wrong.factor;
  }
  for (const char* name : {"f64.loss", "f64.grad_norm"}) {
    const TempFolder temp;
    change<double>(near_zero(), temp.path() / "changed", name, 19, 1 + 3e-9);
    EXPECT_EQ(verdict_of(replayed(temp.path() / "changed"), name), Verdict::bad) << name;
  }
}

// Sums of squares in f32 are a little off, those in f64 are not.
Kernels with_wrong_norms() {
  Kernels wrong = kernels::ref::table();
  wrong.name = "wrong norms";
  wrong.sum_squares = [](const Exec& exec, const SumSquaresArgs& args) noexcept {
    kernels::ref::table().sum_squares(exec, args);
    if (args.x.dtype() == DType::f32) *args.y.as<double>() *= 1.00004;
  };
  return wrong;
}

// Where it is ours that is off, the recording's error excuses nothing.
TEST(TraceNearZero, ANormThatRoundingDoesNotExplainIsBad) {
  const Kernels wrong = with_wrong_norms();
  const VerifyReport report = replayed(test::golden("gpt2"), wrong);
  for (const char* name : {"loss", "gradients", "final weights"}) {
    EXPECT_EQ(verdict_of(report, name), Verdict::good) << name;
  }
  EXPECT_EQ(verdict_of(report, "grad_norm"), Verdict::bad);
}

TEST(TraceNearZero, SeesAnotherModel) {
  for (const Json& patch : {Json{{"activation_function", "gelu"}}, Json{{"scale_embedding", false}},
                            Json{{"encoder_attention_heads", 4}}}) {
    const VerifyReport report = replayed(near_zero(), kernels::best_table(), patch);
    for (const char* name : {"grad_norm", "f64.grad_norm"}) {
      EXPECT_EQ(verdict_of(report, name), Verdict::bad) << patch.dump() << " " << name;
    }
  }
}

}  // namespace
}  // namespace qkv

// qkv verify: computes what a reference recorded beside a model, and says how far apart the two are.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "base/json.h"
#include "common/commands.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "verify/verify_model.h"
#include "verify/verify_tokens.h"
#include "verify/verify_training.h"

namespace qkv::app {
namespace {

struct Options {
  std::string folder, dtype = "f32";
  int threads = 0;
  bool json = false;
};

const char* word(VerifyLine::Verdict verdict) {
  switch (verdict) {
    case VerifyLine::Verdict::good:
      return "good";
    case VerifyLine::Verdict::bad:
      return "BAD";
    case VerifyLine::Verdict::shown:
      return "shown";
  }
  return "?";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2e}", *value) : "";
}

void print(const VerifyReport& report, const std::string& summary) {
  const bool colour = isatty(STDOUT_FILENO) != 0;
  std::cout << fmt::format("{:<26} {:<18} {:>9} {:>9}  {}\n", "tensor", "shape", "NMSE", "worst/sd", "");
  for (const VerifyLine& line : report.lines) {
    const bool bad = line.verdict == VerifyLine::Verdict::bad;
    std::cout << fmt::format("{:<26} {:<18} {:>9} {:>9}  {}{:<7}{} {}\n", line.name, line.shape, number(line.nmse),
                             number(line.worst), colour && bad ? "\033[31m" : "", word(line.verdict),
                             colour && bad ? "\033[0m" : "", line.note);
  }
  std::cout << summary << '\n';
}

void print_json(const VerifyReport& report, const std::string& summary) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const VerifyLine& line : report.lines) {
    nlohmann::ordered_json one{{"tensor", line.name}, {"shape", line.shape}, {"verdict", word(line.verdict)}};
    if (line.nmse) one["nmse"] = *line.nmse;
    if (line.worst) one["worst"] = *line.worst;
    if (!line.note.empty()) one["note"] = line.note;
    lines.push_back(std::move(one));
  }
  const nlohmann::ordered_json out{{"good", report.good()}, {"summary", summary}, {"tensors", std::move(lines)}};
  std::cout << out.dump(2) << '\n';
}

void verify(const Options& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.folder);
  const Engine engine(kernels::best_table(), {.threads = options.threads});
  const Precision precision = options.dtype == "bf16" ? Precision::bf16() : Precision::f32();
  VerifyReport report = verify_model(checkpoint, engine, precision, options.folder);
  verify_tokens(report, checkpoint, engine, precision, options.folder);
  if (options.dtype == "f32") verify_training(report, checkpoint, engine, options.folder);
  using Verdict = VerifyLine::Verdict;
  const int64_t bad = report.count(Verdict::bad), checked = report.count(Verdict::good) + bad;
  std::string summary =
      fmt::format("{} in {}: {} of {} within bounds, {} shown without a bound", checkpoint.spec.family, options.dtype,
                  checked - bad, checked, report.count(Verdict::shown));
  if (checked == 0) summary += "; the recording is of other numbers than these quantised weights";
  options.json ? print_json(report, summary) : print(report, summary);
  if (!report.good()) throw AnswerNo{};
}

}  // namespace

void add_verify(Command app) {
  const Command command = app.add_command("verify", "Compute what io.safetensors recorded beside a model, and compare");
  const auto options = std::make_shared<Options>();
  command.add_option("DIR", options->folder, "A model folder with io.safetensors").required();
  command.add_option("--dtype", options->dtype, "f32: held to every number. bf16: held to its logits")
      .one_of({"f32", "bf16"})
      .show_default();
  command.add_option("--threads", options->threads, "0: as many as there are").between(0, 1024);
  command.add_flag("--json", options->json, "Print it as JSON");
  command.footer(
      "Examples:\n  qkv verify tests/golden/gpt2\n  qkv verify tests/golden/mixtral --dtype bf16 --json\n\n"
      "Exit code 0 only if everything that has a bound is within it, 1 if not.");
  command.callback([options] { verify(*options); });
}

}  // namespace qkv::app

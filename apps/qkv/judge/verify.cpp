// qkv verify: is a thing what a recording says? Models against what a reference computed, tokenizers against its
// vectors, packed data against its checksums.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/display_width.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/compute_options.h"
#include "common/drawing.h"
#include "common/reports.h"
#include "data/dataset.h"
#include "model/checkpoint/checkpoint.h"
#include "verify/verify_model.h"
#include "verify/verify_tokenizer.h"
#include "verify/verify_tokens.h"
#include "verify/verify_training.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kLargestVectors = 512 << 20;

constexpr const char* kVerifyHelp =
    R"(What PATH is decides what is checked:
  a model folder with io.safetensors      every number, every token written and, with train.safetensors, every training step that a reference recorded there
  a tokenizer with vectors.json beside it  every field of every case; --vectors names another file
  a folder made by qkv data pack          every byte against its checksum
  a model that ships, as world            the same

Exit code 0 only if everything is as recorded, 1 if not.

Examples:
  qkv verify tests/golden/gpt2
  qkv verify tests/golden/mixtral --dtype bf16 --json
  qkv verify tests/golden/tokenizers/gpt2
  qkv verify gpt2/tokenizer.json --vectors mine.json
  qkv verify my-data
  qkv verify world)";

struct VerifyArguments {
  std::string path, vectors;
  std::optional<std::string> dtype;
  ComputeOptions compute;
  bool json = false;
};

// --- models ---------------------------------------------------------------------------------------------------------

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

void print_verify(const VerifyReport& report, const std::string& summary) {
  std::cout << fmt::format("{:<26} {:<18} {:>9} {:>9}  {}\n", "tensor", "shape", "NMSE", "worst/sd", "");
  for (const VerifyLine& line : report.lines) {
    const bool bad = line.verdict == VerifyLine::Verdict::bad;
    const std::string verdict = inked(bad ? Ink::red : Ink::plain, fmt::format("{:<7}", word(line.verdict)));
    std::cout << fmt::format("{:<26} {:<18} {:>9} {:>9}  {} {}\n", line.name, line.shape, number(line.nmse),
                             number(line.worst), verdict, line.note);
  }
  std::cout << summary << '\n';
}

OrderedJson json_of(const VerifyReport& report, const std::string& summary) {
  OrderedJson lines = OrderedJson::array();
  for (const VerifyLine& line : report.lines) {
    OrderedJson one{{"tensor", line.name}, {"shape", line.shape}, {"verdict", word(line.verdict)}};
    if (line.nmse) one["nmse"] = *line.nmse;
    if (line.worst) one["worst"] = *line.worst;
    if (!line.note.empty()) one["note"] = line.note;
    lines.push_back(std::move(one));
  }
  return {{"good", report.good()}, {"summary", summary}, {"tensors", std::move(lines)}};
}

bool good_model(const VerifyArguments& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.path);
  QKV_CHECK(is_there(fs::path(options.path) / "io.safetensors"), options.path,
            " has no io.safetensors, so there is nothing to compare the model with",
            Hint("tests/golden/README.md says how one is recorded with Hugging Face transformers"));
  constexpr int64_t kCopies = 8;  // of the weights: those of a training, with passes
  const Engine engine(kernels_for(options.compute, checkpoint.spec, kCopies), {.threads = options.compute.threads});
  const std::string dtype = options.dtype.value_or("f32");
  const Precision precision = dtype == "bf16" ? Precision::bf16() : Precision::f32();
  VerifyReport report = verify_model(checkpoint, engine, precision, options.path);
  verify_tokens(report, checkpoint, engine, precision, options.path);
  if (dtype == "f32") verify_training(report, checkpoint, engine, options.path);
  using Verdict = VerifyLine::Verdict;
  const int64_t bad = report.count(Verdict::bad), checked = report.count(Verdict::good) + bad;
  std::string summary =
      fmt::format("{} in {}: {} of {} within bounds, {} shown without a bound", checkpoint.spec.family, dtype,
                  checked - bad, checked, report.count(Verdict::shown));
  if (checked == 0) summary += "; the recording is of other numbers than these quantised weights";
  options.json ? print_json(json_of(report, summary)) : print_verify(report, summary);
  return report.good();
}

// --- tokenizers -----------------------------------------------------------------------------------------------------

std::string json_start(const Json& value) {
  constexpr int kShown = 400;
  const std::string text = json_text(value, -1);
  const std::string_view fits = fit_width(text, kShown);
  return std::string(fits) + (fits.size() < text.size() ? "..." : "");
}

bool good_tokenizer(const VerifyArguments& options, const std::string& file) {
  const Tokenizer tokenizer = Tokenizer::load(options.path);
  const TokenizerVerdict verdict = verify_tokenizer(tokenizer, read_file(file, kLargestVectors), file);
  const bool good = verdict.equal == verdict.cases;
  if (options.json) {
    OrderedJson differences = OrderedJson::array();
    for (const TokenizerDifference& d : verdict.differences) {
      differences.push_back(
          {{"index", d.index}, {"text", d.text}, {"field", d.field}, {"expected", d.expected}, {"got", d.got}});
    }
    print_json({{"good", good}, {"cases", verdict.cases}, {"equal", verdict.equal}, {"differences", differences}});
    return good;
  }
  for (const TokenizerDifference& d : verdict.differences) {
    std::cout << fmt::format("case {}: {} of {}\n  expected {}\n  got      {}\n", d.index, d.field, printable(d.text),
                             json_start(d.expected), json_start(d.got));
  }
  std::cout << fmt::format("{} of {} equal\n", verdict.equal, verdict.cases);
  return good;
}

// --- packed data ----------------------------------------------------------------------------------------------------

bool good_data(const VerifyArguments& options) {
  const PackedDataset data(options.path);
  std::vector<std::string> damaged;
  for (const Split split : kSplits) {
    Progress progress(fmt::format("reading {}, bytes", name_of(split)), 0);
    const auto found =
        data.of(split).damaged_files([&](uint64_t bytes) { progress.update(static_cast<int64_t>(bytes)); });
    progress.finish();
    damaged.insert(damaged.end(), found.begin(), found.end());
  }
  if (options.json) {
    print_json({{"good", damaged.empty()}, {"damaged", damaged}});
  } else {
    for (const std::string& file : damaged) std::cout << file << " is not what was written\n";
    if (damaged.empty()) std::cout << options.path << ": every file is what was written\n";
  }
  return damaged.empty();
}

// A model that ships has its checksums beside it, and no recording.
bool good_files(const VerifyArguments& options) {
  std::string said;
  try {
    const Hint hint("put it back: git checkout, or the package");
    check_files(options.path, read_manifest(options.path, hint), hint);
  } catch (const Error& error) {
    said = error.message();
  }
  if (options.json) {
    print_json({{"good", said.empty()}, {"damaged", said.empty() ? OrderedJson::array() : OrderedJson{said}}});
  } else {
    std::cout << (said.empty() ? options.path + ": every file is what was written" : said) << '\n';
  }
  return said.empty();
}

bool good(const VerifyArguments& options) {
  const fs::path path = options.path;
  const fs::path folder = is_folder(path) ? path : path.parent_path();
  const auto no_dtype = [&](const char* what) {
    QKV_CHECK(!options.dtype, "--dtype ", options.dtype.value_or(""), ", but ", options.path, " is compared as ", what,
              ", where nothing is computed in a type", Hint("leave out --dtype"));
  };
  if (!options.vectors.empty()) {
    no_dtype("a tokenizer");
    return good_tokenizer(options, options.vectors);
  }
  if (is_folder(path) && is_there(path / kManifest)) {
    const bool data = !is_there(path / "config.json");
    no_dtype(data ? "packed data" : "files with checksums");
    return data ? good_data(options) : good_files(options);
  }
  if (!is_there(folder / "io.safetensors") && is_there(folder / "vectors.json")) {
    no_dtype("a tokenizer");
    return good_tokenizer(options, (folder / "vectors.json").string());
  }
  return good_model(options);
}

}  // namespace

void add_verify(Command app) {
  const Command command = app.add_command("verify", "Compare a model, a tokenizer or packed data with its recording");
  const auto options = std::make_shared<VerifyArguments>();
  command.add_model("PATH", options->path, "A model folder, a tokenizer, packed data, or a built-in model (qkv models)")
      .required();
  command.add_option("--dtype", options->dtype, "Models: f32 is held to every number, bf16 to its logits")
      .one_of({"f32", "bf16"})
      .show_default("f32");
  command.add_option("--vectors FILE", options->vectors, "Tokenizers: the cases to compare with");
  add_compute_options(command, options->compute);
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kVerifyHelp);
  command.callback([options] {
    if (!good(*options)) throw AnswerNo{};
  });
}

}  // namespace qkv::app

// qkv quantize: a model in 8 or 4 bits, and what that costs.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/compute_options.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "data/text_windows.h"
#include "infer/text_distance.h"
#include "io/gguf.h"
#include "kernels/tables.h"
#include "model/checkpoint/convert.h"
#include "model/quantized/quantized_model.h"
#include "model/quantized/quantized_names.h"
#include "text/tokenizer/tokenizer.h"
#include "world/world.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestText = size_t{1} << 30;
constexpr size_t kMostTokens = 8192;
constexpr int64_t kWindowTokens = 256;

constexpr const char* kQuantizeExamples = R"(Examples:
  qkv quantize llama --to q8 --out llama-q8
  qkv quantize llama --to q4 --out llama-q4 --group 32 --data text.txt
  qkv quantize llama.gguf --to q4 --out llama-q4 --json

The report compares the new model with the old one on text: KL divergence, agreement of the top guess, perplexity.
docs/quantization.md says what larger and smaller groups cost.)";

struct QuantizeArguments {
  std::string model, out, to, group, data;
  ComputeOptions compute;
  bool json = false;
};

// --- text to compare on ---------------------------------------------------------------------------------------------

struct Compared {
  std::vector<TokenText> texts;
  std::string what;  // where they are from
};

std::vector<int32_t> random_ids(int64_t vocabulary) {
  std::vector<int32_t> ids;
  const PhiloxKey key = fold({.seed = 1});
  for (uint64_t i = 0; ids.size() < kMostTokens / 4; ++i) {
    ids.push_back(static_cast<int32_t>(random_u32(key, i, 0) % static_cast<uint64_t>(vocabulary)));
  }
  return ids;
}

// The token a text begins with, where there is one.
std::vector<int32_t> opening(const Tokenizer& tokenizer) {
  const std::vector<int32_t> empty = tokenizer.encode("");
  return empty.size() == 1 && empty.front() == tokenizer.named().bos ? empty : std::vector<int32_t>{};
}

// At most kMostTokens in all.
std::vector<TokenText> in_windows(std::vector<int32_t> ids, const WindowOptions& windows) {
  const size_t count = (kMostTokens - 1) / static_cast<size_t>(windows.length) + 1;
  ids.resize(std::min(ids.size(), kMostTokens - count * windows.before.size()));
  return cut_into_windows(ids, windows);
}

std::vector<int32_t> sample_tokens(const Tokenizer& tokenizer, const std::string& data) {
  const EncodeOptions plain{.add_specials = false};
  if (!data.empty()) return tokenizer.encode(read_text(data, kLargestText), plain);
  std::vector<int32_t> ids;
  const World world(1);
  for (uint64_t i = 0; ids.size() < kMostTokens; ++i) {
    const std::vector<int32_t> story = tokenizer.encode(world.text(i, Language::english) + "\n", plain);
    ids.insert(ids.end(), story.begin(), story.end());
  }
  return ids;
}

Compared texts_for(const QuantizeArguments& options, const ModelSpec& spec) {
  QKV_CHECK(spec.vocabulary > 0, options.model, ": has no vocabulary, so there are no choices to compare",
            Hint("this is a part of a model"));
  const int64_t ids = spec.source_vocabulary > 0 ? std::min(spec.source_vocabulary, spec.vocabulary) : spec.vocabulary;
  WindowOptions windows{.length = spec.context > 0 ? std::min(kWindowTokens, spec.context) : kWindowTokens};
  Compared made;
  try {
    const Tokenizer tokenizer = Tokenizer::load(options.model).without_truncation();
    windows.before = opening(tokenizer);
    made.texts = in_windows(sample_tokens(tokenizer, options.data), windows);
    made.what = options.data.empty() ? "stories of the built-in world" : options.data;
  } catch (const Error& error) {
    QKV_CHECK(options.data.empty(), error.message(), Hint("--data needs the model's tokenizer and a text"));
    made.texts = in_windows(random_ids(ids), {.length = windows.length});
    made.what = "random ids, as there is no tokenizer (" + error.message() + ")";
  }
  QKV_CHECK(!made.texts.empty(), made.what, " has no two tokens to compare on", Hint("give a longer text"));
  for (const TokenText& text : made.texts) {
    for (const int32_t id : text.ids) {
      QKV_CHECK(id < ids, "the tokenizer gives token ", id, " but the model has ", ids,
                Hint("the tokenizer belongs to another model"));
    }
  }
  return made;
}

// --- the report -----------------------------------------------------------------------------------------------------

void print_quantize(const QuantizeArguments& options, const QuantizeReport& report, const std::string& what,
                    const TextDistance& d) {
  const auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::cout << fmt::format("{:<19} {:<7} {:>6} {:>12} {:>10}  {:>9} {:>9}\n", "weights", "as", "count", "numbers", "MB",
                           "mean err", "worst err");
  for (const QuantizeReport::Kind& kind : report.kinds) {
    std::cout << fmt::format("{:<19} {:<7} {:>6} {:>12} {:>10.2f}  {:>8.3f}% {:>8.3f}%\n", name_of(kind.part),
                             format_text(kind.format), kind.weights, kind.numbers, megabytes(kind.bytes),
                             100 * kind.mean, 100 * kind.worst);
  }
  for (const std::string& note : report.notes) std::cout << wrapped("note: " + note, terminal_columns());
  std::cout << fmt::format("{:.2f} MB become {:.2f} MB, {:.2f} bits per weight\n", megabytes(report.bytes_before),
                           megabytes(report.bytes_after), report.bits());
  std::cout << fmt::format("on {} tokens of {}: KL {:.2e}, top-1 agreement {:.2f} %", d.tokens, what, d.kl,
                           100 * d.agree);
  if (d.perplexity_before) {
    std::cout << fmt::format(", perplexity {:.4f} -> {:.4f}", *d.perplexity_before, *d.perplexity_after);
  }
  std::cout << '\n' << options.out << " is written\n";
}

void print_quantize_json(const QuantizeArguments& options, const QuantizeReport& report, const std::string& what,
                         const TextDistance& d) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (const QuantizeReport::Kind& kind : report.kinds) {
    kinds.push_back({{"weights", name_of(kind.part)},
                     {"format", format_text(kind.format)},
                     {"count", kind.weights},
                     {"numbers", kind.numbers},
                     {"bytes", kind.bytes},
                     {"mean_error", kind.mean},
                     {"worst_error", kind.worst}});
  }
  nlohmann::ordered_json text{{"from", what}, {"tokens", d.tokens}, {"kl", d.kl}, {"top1_agreement", d.agree}};
  if (d.perplexity_before) {
    text["perplexity_before"] = *d.perplexity_before;
    text["perplexity_after"] = *d.perplexity_after;
  }
  const nlohmann::ordered_json out{{"out", options.out},
                                   {"bytes_before", report.bytes_before},
                                   {"bytes_after", report.bytes_after},
                                   {"bits_per_weight", report.bits()},
                                   {"kinds", std::move(kinds)},
                                   {"notes", report.notes},
                                   {"text", std::move(text)}};
  std::cout << json_text(out) << '\n';
}

// --- the work -------------------------------------------------------------------------------------------------------

WriteProgress progress_line(std::unique_ptr<Progress>& line, const std::string& what) {
  return [&line, what](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<Progress>(what, total);
    line->update(done);
  };
}

void quantize(const QuantizeArguments& options) {
  const std::string group = options.group == "row" ? "" : "/" + options.group;
  const Format to = parse_panels(options.to + group, "--to and --group");
  const Checkpoint source = Checkpoint::open(options.model);
  const Compared on = texts_for(options, source.spec);  // before the work, so that what is wrong is said first
  // Quantised on the host, so that the bits are the same everywhere; both models are compared on the device.
  const Engine host(kernels::best_table(), {.threads = options.compute.threads}),
      engine(kernels_for(options.compute, source.spec, 3), {.threads = options.compute.threads});
  std::error_code ignored;
  const bool folder = fs::is_directory(options.model, ignored);

  std::unique_ptr<Progress> line;
  QuantizeReport report;
  {
    const InterruptWatch interrupt;
    const WriteProgress show = progress_line(line, "writing " + options.out);
    report = quantize_model(source, options.out, host,
                            {.to = to,
                             .copied = folder ? companion_files(options.model) : std::vector<fs::path>{},
                             .progress = [&](int64_t done, int64_t total) {
                               show(done, total);
                               if (!interrupt.seen()) return;
                               std::cerr << options.out << ": stopped, nothing is written; run it again\n";
                               throw Interrupted{};  // what was written so far is removed
                             }});
  }
  if (line) line->finish();
  line.reset();
  if (!folder && Gguf::open(options.model).has("tokenizer.ggml.tokens")) {
    report.notes.push_back(
        "the GGUF's tokenizer is not written: put tokenizer.json of the original model into the folder");
  }

  const TextDistance distance = distance_on_texts(
      *source.model(engine.device()), *Checkpoint::open(options.out).model(engine.device()), engine, on.texts,
      {.precision = source.spec.dtype == DType::bf16 ? Precision::bf16() : Precision::f32(),
       .progress = progress_line(line, "comparing")});
  if (line) line->finish();
  (options.json ? print_quantize_json : print_quantize)(options, report, on.what, distance);
}

}  // namespace

void add_quantize(Command app) {
  const Command command = app.add_command("quantize", "Write a model in 8 or 4 bits, and say what that costs");
  const auto options = std::make_shared<QuantizeArguments>();
  command.add_model("MODEL", options->model, "A Hugging Face folder, a GGUF file, or a built-in model (qkv models)")
      .required();
  command.add_output_folder("--out DIR", options->out, "The folder to make; it must not exist yet").required();
  command.add_option("--to", options->to, "8 or 4 bits; embedding and head are q8 in both")
      .required()
      .one_of({"q8", "q4"});
  options->group = "32";
  command.add_option("--group", options->group, "How many numbers share a scale")
      .one_of({"32", "64", "128", "256", "row"})
      .show_default();
  command.add_option("--data FILE", options->data,
                     "Text to compare both models on; otherwise stories of the built-in world");
  add_compute_options(command, options->compute);
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kQuantizeExamples);
  command.callback([options] { quantize(*options); });
}

}  // namespace qkv::app

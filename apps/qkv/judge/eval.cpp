// qkv eval: how well a model predicts a text, tells right sentences from wrong ones, or expects translations.
#include <algorithm>
#include <memory>

#include "base/path.h"
#include "common/commands.h"
#include "judge/eval_run.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEvalHelp =
    R"(What --data is decides what is measured:
  a text                              perplexity: it is cut into windows, and every token is scored once, given what is before it in its window
  a .jsonl, or a folder of these      minimal pairs as BLiMP has them, an object with sentence_good and sentence_bad in each line; a pair is right if the model finds the whole good sentence more likely
  lines of source, tab, target        for models that translate: perplexity of the targets, given their sources

A window begins with the model's BOS token, if it has one; otherwise with the last token of the window before. The 95 %
intervals are bootstrap-t over windows or lines, 20 at least, from 1000 resamples; those of pairs are exact.

Examples:
  qkv eval MODEL --data text.txt
  qkv eval MODEL --data text.txt --window 1024 --stride 512
  qkv eval MODEL --data blimp/ --json
  qkv eval opus-mt-en-de --data valid.tsv)";

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : folder_entries(folder)) {
    if (entry.extension() == ".jsonl") files.push_back(entry);
  }
  QKV_CHECK(!files.empty(), folder.string(), " has no .jsonl files", Hint("a text is given as a file"));
  return files;
}

void evaluate(const EvalOptions& options) {
  EvalRun run(options);
  if (run.model.spec().has_source()) {
    eval_translations(run);
  } else if (is_folder(options.data)) {
    eval_minimal_pairs(run, files_in(options.data));
  } else if (const std::string text = checked_text(options.data); begins_with_minimal_pair(text)) {
    eval_minimal_pairs(run, {options.data});
  } else {
    eval_text(run, text);
  }
  run.report.finish();
}

}  // namespace

void add_eval(Command app) {
  const Command command = app.add_command("eval", "Perplexity, bits per byte, accuracy on minimal pairs");
  const auto options = std::make_shared<EvalOptions>();
  add_model_options(command, options->model);
  add_cache_options(command, options->cache);
  command
      .add_option("--data FILE", options->data,
                  "A text, a .jsonl of minimal pairs, or a folder of these; for a model that translates lines of "
                  "source<TAB>target")
      .required();
  command
      .add_option("--window", options->window,
                  "Tokens of one text at most; longer ones are cut. Otherwise 512, or the model's context if less")
      .between(int64_t{2}, int64_t{1} << 20);
  command.add_option("--stride", options->stride, "How many tokens of a window are new; the others are context")
      .between(int64_t{1}, int64_t{1} << 20);
  command.add_option("--seed", options->seed, "Seed of the bootstrap");
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kEvalHelp);
  command.callback([options] { evaluate(*options); });
}

}  // namespace qkv::app

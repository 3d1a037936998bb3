// qkv align: which words of a source a translation looks at.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/display_width.h"
#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "inspect/look/alignment.h"
#include "text/documents.h"

namespace qkv::app {
namespace {

constexpr const char* kAlignExamples =
    R"(The attention of the decoder to the encoder, the mean of one layer's heads (the last but one layer, or --layer), from
tokens to words. i-j pairs are source-target, counted from 0: each target word with the source word it attends to most.

Examples:
  qkv align MODEL "Guten Morgen , Anna" "Good morning , Anna"
  qkv align MODEL "早上好" "good morning" --pharaoh
  qkv align MODEL --data pairs.tsv > pairs.align        a line of i-j pairs for each source<TAB>target
  qkv align MODEL --data pairs.tsv --json > out.json    with all weights)";

struct AlignArguments {
  ModelOptions model;
  std::string source, target, data;
  ReportOptions report;
  std::optional<int64_t> layer;
  bool pharaoh = false;
};

using Report = nlohmann::ordered_json;

std::string pharaoh(const WordAlignment& alignment) {
  std::string line;
  for (const auto& [source, target] : alignment.pairs()) {
    line += (line.empty() ? "" : " ") + fmt::format("{}-{}", source, target);
  }
  return line;
}

Report alignment_json(const WordAlignment& alignment) {
  Report source = Report::array(), target = Report::array(), pairs = Report::array(), weights = Report::array();
  for (const TokenWord& word : alignment.source) source.push_back(word.text);
  for (const TokenWord& word : alignment.target) target.push_back(word.text);
  for (const auto& [s, t] : alignment.pairs()) pairs.push_back({s, t});
  for (size_t t = 0; t < alignment.target.size(); ++t) {
    Report row = Report::array();
    for (size_t s = 0; s < alignment.source.size(); ++s) row.push_back(alignment.at(t, s));
    weights.push_back(row);
  }
  return {{"source", source}, {"target", target}, {"layer", alignment.layer}, {"pairs", pairs}, {"weights", weights}};
}

int widest(const std::vector<TokenWord>& words) {
  int most = 1;
  for (const TokenWord& word : words) most = std::max(most, display_width(word.text));
  return most;
}

// Target words downward, source words across, in as many blocks as the terminal is wide.
void draw_alignment(const WordAlignment& alignment) {
  const int label = std::min(widest(alignment.target), 16), room = terminal_columns() - label - 2;
  const int cells = std::clamp(widest(alignment.source), 3, 9) + 1;
  const auto across = static_cast<size_t>(std::max(room / cells, 1));
  for (size_t first = 0; first < alignment.source.size(); first += across) {
    const size_t end = std::min(first + across, alignment.source.size());
    std::cout << std::string(static_cast<size_t>(label) + 1, ' ');
    for (size_t s = first; s < end; ++s) std::cout << in_cells(alignment.source[s].text, cells - 1) << ' ';
    std::cout << '\n';
    for (size_t t = 0; t < alignment.target.size(); ++t) {
      std::cout << in_cells_right(alignment.target[t].text, label) << ' ';
      for (size_t s = first; s < end; ++s) std::cout << heat(alignment.at(t, s), cells - 1) << ' ';
      std::cout << '\n';
    }
    std::cout << '\n';
  }
  std::cout << pharaoh(alignment) << '\n'
            << fmt::format("layer {} of {} target and {} source words\n", alignment.layer, alignment.target.size(),
                           alignment.source.size());
}

void align_file(const OpenModel& model, const AlignArguments& options, const AlignOptions& how) {
  DocumentReader reader({options.data}, {.format = DataFormat::tsv});
  Progress progress("pairs", 0);
  InterruptWatch interrupts;
  Report all = Report::array();
  int64_t done = 0;
  for (Document document; reader.next(document);) {
    const WordAlignment made = [&] {
      try {
        return align(model.model(), model.engine(), model.tokenizer(), model.encode(document.text, document.target),
                     how);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}: pair {}: {}", options.data, done + 1, error.message()), error.hint(),
                    error.where());
      }
    }();
    if (options.report.wanted()) all.push_back(alignment_json(made));
    if (!options.report.json) std::cout << pharaoh(made) << '\n';
    progress.update(++done);
    if (interrupts.seen()) throw Interrupted{};
  }
  progress.finish();
  QKV_CHECK(done > 0, options.data, " has no pairs", Hint("one per line, source<TAB>target"));
  write_report(options.report, {{"model", model.path()}, {"alignments", all}});
}

void run_align(const AlignArguments& options) {
  const bool one = !options.source.empty() && !options.target.empty();
  QKV_CHECK(one != !options.data.empty() && (one || options.source.empty()),
            "qkv align takes a source and a target, or --data", Hint("qkv align MODEL \"source\" \"target\""));
  const OpenModel model = open_model(options.model);
  QKV_CHECK(model.spec().has_source(), "a ", model.spec().family, " has no cross-attention to align by",
            Hint("take a model that translates"));
  const AlignOptions how{.precision = model.precision(), .layer = options.layer};
  if (!one) return align_file(model, options, how);
  const TokenText pair = model.encode(options.source, options.target);
  const WordAlignment made = align(model.model(), model.engine(), model.tokenizer(), pair, how);
  write_report(options.report, alignment_json(made));
  if (options.report.json) return;
  if (options.pharaoh) {
    std::cout << pharaoh(made) << '\n';
  } else {
    draw_alignment(made);
  }
}

}  // namespace

void add_align(Command app) {
  const Command command = app.add_command("align", "Word alignment from cross-attention");
  const auto options = std::make_shared<AlignArguments>();
  add_model_options(command, options->model);
  command.add_option("SOURCE", options->source, "A sentence");
  command.add_option("TARGET", options->target, "Its translation");
  command.add_option("--data FILE", options->data, "Many pairs: a file of source<TAB>target lines");
  command.add_option("--layer", options->layer,
                     "Layer whose heads are used, counted from 0; otherwise the last but one");
  command.add_flag("--pharaoh", options->pharaoh, "Print i-j pairs only (Pharaoh format)");
  add_report_options(command, options->report);
  command.footer(kAlignExamples);
  command.callback([options] { run_align(*options); });
}

}  // namespace qkv::app

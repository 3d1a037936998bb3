// qkv align: which words of a source a translation looks at.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/display_width.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "inspect/look/alignment.h"
#include "inspect/look/alignment_both_ways.h"
#include "inspect/look/alignment_error.h"
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
  qkv align MODEL --data pairs.tsv --json > out.json    with all weights
  qkv world --labels align --lines 400 > gold.jsonl
  qkv align translator --gold gold.jsonl                the head that aligns best, and its alignment error rate
  qkv align translator --gold gold.jsonl --both-ways    words that look at one another, there and back)";

struct AlignArguments {
  ModelOptions model;
  std::string source, target, data, gold;
  ReportOptions report;
  std::optional<int64_t> layer;
  bool pharaoh = false, both_ways = false;
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

void show_score(const ModelSpec& spec, const AlignmentScore& score) {
  const auto line = [](const std::string& name, const Estimate& e) {
    std::cout << fmt::format("  {:<13}{:.1f} % [{:.1f}, {:.1f}]\n", name, 100 * e.mean, 100 * e.low, 100 * e.high);
  };
  std::cout << fmt::format("alignment error rate, {} sentence pairs, {} gold links\n", score.sentences, score.links)
            << "each head is chosen on every other pair and judged on the rest\n";
  line(name_of(spec, score.choice.head), score.judged);
  std::cout << inked(Ink::dim, fmt::format("               the row that {} a word, links from {:.0f} % of its weight;\n"
                                           "               where it was chosen {:.1f} %\n",
                                           score.choice.reading ? "reads" : "predicts", 100 * score.choice.least,
                                           100 * score.chosen.mean));
  line("diagonal", score.diagonal);
  line("  more by", score.below_diagonal);
  line("IBM model 1", score.model1);
  line("  more by", score.below_model1);
}

Report score_json(const std::string& model, const ModelSpec& spec, const AlignmentScore& score) {
  Report heads = Report::array();
  size_t at = 0;
  for (const HeadId& head : all_heads(spec)) {
    if (head.stack == Stack::cross)
      heads.push_back({{"name", name_of(spec, head)}, {"aer", to_json(score.best[at++])}});
  }
  return {{"report", "align"},
          {"model", model},
          {"sentences", score.sentences},
          {"links", score.links},
          {"head", name_of(spec, score.choice.head)},
          {"row", score.choice.reading ? "reads" : "predicts"},
          {"least_weight", score.choice.least},
          {"where_chosen", to_json(score.chosen)},
          {"aer", to_json(score.judged)},
          {"diagonal", to_json(score.diagonal)},
          {"ibm_model_1", to_json(score.model1)},
          {"diagonal_minus_head", to_json(score.below_diagonal)},
          {"ibm_model_1_minus_head", to_json(score.below_model1)},
          {"heads_where_chosen", heads}};
}

void show_both_ways(const ModelSpec& spec, const BothWaysScore& score) {
  show_score(spec, score.there);
  std::cout << fmt::format("both ways, {} there and {} back: words that look at one another\n",
                           name_of(spec, score.there.choice.head), name_of(spec, score.back.choice.head))
            << fmt::format("  back alone   {:.1f} % [{:.1f}, {:.1f}]\n", 100 * score.back.judged.mean,
                           100 * score.back.judged.low, 100 * score.back.judged.high)
            << fmt::format("  together     {:.1f} % [{:.1f}, {:.1f}]\n", 100 * score.judged.mean,
                           100 * score.judged.low, 100 * score.judged.high)
            << inked(Ink::dim, fmt::format("               links from {:.0f} % of mutual weight; where it was chosen "
                                           "{:.1f} %\n",
                                           100 * score.least, 100 * score.chosen.mean));
}

void score_file(const OpenModel& model, const AlignArguments& options) {
  const std::vector<GoldPair> pairs = read_gold_pairs(read_text(options.gold, kLargestTextFile), options.gold);
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  const PairTokenizers tokenizers{model.tokenizer(), model.target_tokenizer(), model.target_start()};
  const auto watch = [&](const auto& measure) { return watched("aligning", std::ssize(pairs), measure); };
  if (!options.both_ways) {
    const AlignmentScore score =
        watch([&](const Reader::Finished& finished) { return score_alignment(reader, tokenizers, pairs, finished); });
    write_report(options.report, score_json(model.path(), model.spec(), score));
    if (!options.report.json) show_score(model.spec(), score);
    return;
  }
  const BothWaysScore score =
      watch([&](const Reader::Finished& finished) { return score_both_ways(reader, tokenizers, pairs, finished); });
  Report report = score_json(model.path(), model.spec(), score.there);
  report["both_ways"] = {{"back", score_json(model.path(), model.spec(), score.back)},
                         {"least_mutual_weight", score.least},
                         {"where_chosen", to_json(score.chosen)},
                         {"aer", to_json(score.judged)}};
  write_report(options.report, report);
  if (!options.report.json) show_both_ways(model.spec(), score);
}

void run_align(const AlignArguments& options) {
  const bool one = !options.source.empty() && !options.target.empty();
  QKV_CHECK(int{one} + int{!options.data.empty()} + int{!options.gold.empty()} == 1 && (one || options.source.empty()),
            "qkv align takes a source and a target, --data or --gold", Hint("qkv align MODEL \"source\" \"target\""));
  QKV_CHECK(!options.both_ways || !options.gold.empty(), "--both-ways is for --gold",
            Hint("qkv world --labels align --lines 400 > gold.jsonl"));
  const api::Model library = open_library(options.model);
  const OpenModel& model = looking_inside(library);
  QKV_CHECK(model.spec().has_source(), "a ", model.spec().family, " has no cross-attention to align by",
            Hint("take a model that translates"));
  if (!options.gold.empty()) return score_file(model, options);
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
  add_model_options(command, options->model, ModelUse::looks);
  command.add_option("SOURCE", options->source, "A sentence");
  command.add_option("TARGET", options->target, "Its translation");
  command.add_option("--data FILE", options->data, "Many pairs: a file of source<TAB>target lines");
  command.add_option("--gold FILE", options->gold,
                     "Choose a head by gold pairs and judge it: JSON lines as of qkv world --labels align");
  command.add_flag("--both-ways", options->both_ways,
                   "With --gold, for a model that also translates back: words that look at one another");
  command.add_option("--layer", options->layer,
                     "Layer whose heads are used, counted from 0; otherwise the last but one");
  command.add_flag("--pharaoh", options->pharaoh, "Print i-j pairs only (Pharaoh format)");
  add_report_options(command, options->report);
  command.footer(kAlignExamples);
  command.callback([options] { run_align(*options); });
}

}  // namespace qkv::app

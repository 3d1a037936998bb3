// qkv score: how near translations come to their references, with an interval that says what the number is worth.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/reports.h"
#include "eval/bleu.h"
#include "eval/bootstrap.h"
#include "eval/chrf.h"

namespace qkv::app {
namespace {

constexpr size_t kLargestScoredFile = size_t{256} << 20;

constexpr const char* kScoreExamples = R"(Line i of HYPOTHESIS is scored against line i of every REFERENCE.
The 95 % interval is bootstrap-t, from 1000 drawn test sets, and needs 20 lines: two systems whose intervals overlap widely may well be equally good.

Examples:
  qkv score out.de ref.de                            BLEU as WMT reports it
  qkv score --tokenize zh out.zh ref.zh              BLEU of Chinese, character by character
  qkv score --metric chrf out.de ref1.de ref2.de     chrF2 and chrF2++, the better of two references)";

struct ScoreArguments {
  std::string metric = "bleu", tokenize = "13a", hypothesis;
  std::vector<std::string> references;
  uint64_t seed = 0;
  bool eps_smoothing = false, json = false;
};

struct TextLines {
  TextLines(const TextLines&) = delete;  // the lines are views of the text
  TextLines& operator=(const TextLines&) = delete;
  explicit TextLines(const std::string& path) : text(read_text(path, kLargestScoredFile)) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      if (line.ends_with('\r')) line.remove_suffix(1);
      list.push_back(line);
      at = end + 1;
    }
  }
  std::string text;
  std::vector<std::string_view> list;
};

template <class Counts>
struct Scored {
  Counts counts;
  double score = 0;
  std::optional<Interval> interval;  // none: too few lines
};

// count(line) for every line, and value(sum of counts) for all of them and for the bootstrap's draws.
template <class Count, class Value>
auto score_lines(int64_t lines, uint64_t seed, const Count& count, const Value& value) {
  using Counts = decltype(count(int64_t{0}));
  Progress progress("scoring", lines);
  std::vector<Counts> each;
  Scored<Counts> out;
  for (int64_t i = 0; i < lines; ++i) {
    each.push_back(count(i));
    out.counts += each.back();
    progress.update(i + 1);
  }
  out.score = value(out.counts);
  if (lines < kMinItems) return out;
  out.interval = bootstrap_interval(lines,
                                    [&](std::span<const int64_t> picked) {
                                      Counts sum;
                                      for (const int64_t i : picked) sum += each[static_cast<size_t>(i)];
                                      return value(sum);
                                    },
                                    {.seed = seed});
  return out;
}

template <class Counts>
nlohmann::ordered_json as_json(const Scored<Counts>& scored) {
  nlohmann::ordered_json made{{"score", scored.score}};
  if (scored.interval) made["interval95"] = {scored.interval->low, scored.interval->high};
  return made;
}

template <class Counts>
void print_line(std::string_view name, const Scored<Counts>& scored) {
  std::cout << fmt::format("{:<8} {:6.2f}   ", name, scored.score)
            << (scored.interval
                    ? fmt::format("95 % interval {:.2f} to {:.2f}\n", scored.interval->low, scored.interval->high)
                    : fmt::format("an interval needs {} lines\n", kMinItems));
}

void score(const ScoreArguments& options) {
  const TextLines hypothesis(options.hypothesis);
  QKV_CHECK(!hypothesis.list.empty(), options.hypothesis, " has no lines", Hint("there is nothing to score"));
  std::deque<TextLines> references;
  for (const std::string& path : options.references) {
    references.emplace_back(path);
    QKV_CHECK(references.back().list.size() == hypothesis.list.size(), path, " has ", references.back().list.size(),
              " lines but ", options.hypothesis, " has ", hypothesis.list.size(),
              Hint("line i of one must translate line i of the other"));
  }
  const auto lines = std::ssize(hypothesis.list);
  std::vector<std::string_view> wanted(references.size());
  const auto references_of = [&](int64_t i) {
    for (size_t r = 0; r < wanted.size(); ++r) wanted[r] = references[r].list[static_cast<size_t>(i)];
    return std::span<const std::string_view>(wanted);
  };
  const auto ours = [&](int64_t i) { return hypothesis.list[static_cast<size_t>(i)]; };
  nlohmann::ordered_json out{{"lines", lines}, {"references", references.size()}};

  if (options.metric == "bleu") {
    const auto tokenizer = options.tokenize == "zh" ? BleuTokenizer::chinese : BleuTokenizer::mteval_13a;
    const auto scored = score_lines(
        lines, options.seed, [&](int64_t i) { return bleu_counts(ours(i), references_of(i), tokenizer); },
        [](const BleuCounts& counts) { return bleu(counts).score; });
    const Bleu whole = bleu(scored.counts);
    out["tokenize"] = options.tokenize;
    out["bleu"] = as_json(scored);
    out["precisions"] = whole.precisions;
    out["brevity_penalty"] = whole.brevity_penalty;
    out["tokens"] = scored.counts.length;
    out["reference_tokens"] = scored.counts.reference_length;
    if (!options.json) {
      print_line("BLEU", scored);
      const auto& p = whole.precisions;
      std::cout << fmt::format("  precisions {:.1f} / {:.1f} / {:.1f} / {:.1f}, brevity penalty {:.3f}\n", p[0], p[1],
                               p[2], p[3], whole.brevity_penalty)
                << fmt::format("  {} tokens against {}, tokenizer {}\n", scored.counts.length,
                               scored.counts.reference_length, options.tokenize);
    }
  } else {
    const auto smoothing = options.eps_smoothing ? ChrfSmoothing::eps : ChrfSmoothing::effective;
    out["effective_order"] = !options.eps_smoothing;
    const auto chrf_of = [&](ChrfWords words) {
      return score_lines(
          lines, options.seed, [&](int64_t i) { return chrf_counts(ours(i), references_of(i), words, smoothing); },
          [=](const ChrfCounts& counts) { return chrf(counts, words, smoothing); });
    };
    const auto without = chrf_of(ChrfWords::none), with = chrf_of(ChrfWords::up_to_two);
    out["chrf2"] = as_json(without);
    out["chrf2pp"] = as_json(with);
    if (!options.json) {
      print_line("chrF2", without);
      print_line("chrF2++", with);
    }
  }
  if (options.json) {
    std::cout << report_text(out, 2);
  } else {
    std::cout << fmt::format("  {} lines, {} reference{}\n", lines, references.size(),
                             references.size() == 1 ? "" : "s");
  }
}

}  // namespace

void add_score(Command app) {
  const Command command = app.add_command("score", "Score translations against references: BLEU, chrF");
  const auto options = std::make_shared<ScoreArguments>();  // lives as long as the callback
  command.add_option("HYPOTHESIS FILE", options->hypothesis, "Translations, one per line").required();
  command.add_option("REFERENCE FILE", options->references, "References, one file or several").required();
  command.add_option("--metric", options->metric, "Which score").one_of({"bleu", "chrf"}).show_default();
  command.add_option("--tokenize", options->tokenize, "How BLEU splits words: 13a, or zh for Chinese")
      .one_of({"13a", "zh"})
      .show_default();
  command.add_flag("--chrf-eps-smoothing", options->eps_smoothing,
                   "chrF as the mean of the orders' F-scores, sacreBLEU's eff:no");
  command.add_option("--seed", options->seed, "Seed of the bootstrap");
  command.add_flag("--json", options->json, "Print the report as JSON, and nothing else");
  command.footer(kScoreExamples);
  command.callback([options] { score(*options); });
}

}  // namespace qkv::app

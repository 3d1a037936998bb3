// qkv eval on translations: how likely targets are, given their sources.
#include <fmt/format.h>

#include <algorithm>

#include "judge/eval_run.h"

namespace qkv::app {

void eval_translations(EvalRun& run) {
  const std::string& file = run.options.data;
  const std::string text = checked_text(file);
  std::vector<TokenText> texts;
  std::vector<Tally> tallies;
  int64_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string what = fmt::format("{}: line {}", file, ++number);
    const size_t tab = line.find('\t');
    QKV_CHECK(tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos, what, " has ",
              std::count(line.begin(), line.end(), '\t'), " tabs but must have one",
              Hint("a line is a source, a tab, and its translation"));
    const std::string_view target = line.substr(tab + 1);
    const TokenText& pair = texts.emplace_back(run.model.encode_pair(line.substr(0, tab), target));
    const int64_t predicted = std::ssize(pair.ids) - 1;
    QKV_CHECK(!pair.source.empty() && predicted > 0, what, " has a source of ", pair.source.size(),
              " tokens and a target of ", predicted, Hint("both need at least one"));
    run.check_length(pair.source, what);
    run.check_length(pair.ids, what);
    tallies.push_back({.tokens = predicted, .bytes = std::ssize(target)});
  }
  QKV_CHECK(!texts.empty(), file, " has no lines", Hint("there is nothing to evaluate"));
  run.report.json = {{"mode", "pairs"}, {"lines", texts.size()}};
  run.report.say(fmt::format("{} as sources and targets: {} targets, given their sources", file, texts.size()));
  run.add_nats(tallies, texts);
  run.report.add_likelihood(tallies, "line");
}

}  // namespace qkv::app

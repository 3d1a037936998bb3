// qkv eval on minimal pairs: how often the good sentence is more likely than the bad one.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/printable.h"
#include "judge/eval_run.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

struct MinimalPair {
  std::string good, bad;
};

// The pair in a line, if there is one.
std::optional<MinimalPair> pair_in(std::string_view line, const std::string& what) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line[first] != '{') return std::nullopt;
  const Json json = parse_json(line, what);
  const auto good = json.find("sentence_good"), bad = json.find("sentence_bad");
  if (good == json.end() || bad == json.end() || !good->is_string() || !bad->is_string()) return std::nullopt;
  return MinimalPair{good->get<std::string>(), bad->get<std::string>()};
}

TokenText sentence(const EvalRun& run, const std::string& text, const std::string& what) {
  TokenText made{.ids = run.model.tokenizer().encode(text, {.add_specials = false, .read_specials = false})};
  if (run.bos) made.ids.insert(made.ids.begin(), *run.bos);
  QKV_CHECK(made.ids.size() > 1, what, ": ", printable(text), " has too few tokens to score one",
            Hint("a pair has two sentences"));
  run.check_length(made.ids, what);
  return made;
}

// 1 for each pair whose good sentence is more likely.
std::vector<int64_t> right_pairs(EvalRun& run, const fs::path& file) {
  const std::string text = checked_text(file);
  std::vector<TokenText> sentences;
  int64_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string what = fmt::format("{}: line {}", file.string(), ++number);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    const std::optional<MinimalPair> pair = pair_in(line, what);
    QKV_CHECK(pair.has_value(), what, " is no minimal pair",
              Hint("every line is an object with the texts sentence_good and sentence_bad"));
    sentences.push_back(sentence(run, pair->good, what));
    sentences.push_back(sentence(run, pair->bad, what));
  }
  QKV_CHECK(!sentences.empty(), file.string(), " has no pairs", Hint("there is nothing to evaluate"));
  const std::vector<double> found = run.log_probability(sentences);
  std::vector<int64_t> right;
  for (size_t i = 0; i < found.size(); i += 2) right.push_back(found[i] > found[i + 1] ? 1 : 0);
  return right;
}

OrderedJson accuracy(const EvalReport& report, const std::string& name, const std::vector<int64_t>& right) {
  const int64_t count = std::accumulate(right.begin(), right.end(), int64_t{0});
  const double whole = static_cast<double>(count) / static_cast<double>(right.size());
  const Interval i = exact_interval(count, std::ssize(right));
  report.say(fmt::format("{:>6.2f} %   95 % interval {:.2f} to {:.2f}   {:>6} pairs   {}", 100 * whole, 100 * i.low,
                         100 * i.high, right.size(), name));
  return {{"name", name}, {"pairs", right.size()}, {"accuracy", whole}, {"interval95", {i.low, i.high}}};
}

}  // namespace

// Any text may stand in the file, so JSON that cannot be read is an ordinary text.
bool begins_with_minimal_pair(std::string_view text) {
  try {
    return pair_in(text.substr(0, std::min(text.find('\n'), text.size())), "line 1").has_value();
  } catch (const Error&) {
    return false;
  }
}

void eval_minimal_pairs(EvalRun& run, const std::vector<fs::path>& files) {
  const EvalOptions& options = run.options;
  QKV_CHECK(options.window == 0 && options.stride == 0, options.data,
            " has minimal pairs, which are read whole, but --window or --stride was given", Hint("leave them out"));
  EvalReport& report = run.report;
  report.json = {{"mode", "minimal pairs"}, {"windows_begin_with", run.bos_json()}};
  report.say(
      fmt::format("{} as minimal pairs{}", options.data,
                  run.bos ? ": sentences begin with " + run.bos_name() : "; a sentence's first token is not scored"));
  OrderedJson of_files = OrderedJson::array();
  std::vector<int64_t> all;
  for (const fs::path& file : files) {
    const std::vector<int64_t> right = right_pairs(run, file);
    all.insert(all.end(), right.begin(), right.end());
    of_files.push_back(accuracy(report, file.stem().string(), right));
  }
  const OrderedJson whole = accuracy(report, "all", all);
  report.json["accuracy"] = whole["accuracy"];
  report.json["interval95"] = whole["interval95"];
  report.json["pairs"] = whole["pairs"];
  report.json["files"] = std::move(of_files);
}

}  // namespace qkv::app

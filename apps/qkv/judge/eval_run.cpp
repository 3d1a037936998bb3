#include "judge/eval_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "api/judging.h"
#include "base/file.h"
#include "common/drawing.h"
#include "common/reports.h"
#include "common/texts.h"
#include "infer/likelihood.h"
#include "text/unicode/utf8.h"

namespace qkv::app {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::string checked_text(const std::filesystem::path& file) {
  std::string text = read_text(file, kLargestTextFile);
  if (!is_utf8(text)) {
    const std::vector<std::string_view> lines = lines_of(text);
    const auto bad = std::find_if_not(lines.begin(), lines.end(), is_utf8);
    QKV_FAIL(file.string(), ": line ", bad - lines.begin() + 1, " is not UTF-8",
             Hint("convert it, for example with  iconv"));
  }
  return text;
}

void EvalReport::say(const std::string& line) const {
  if (!options_.json) std::cout << wrapped(line, terminal_columns());
}

void EvalReport::finish() const {
  if (options_.json) std::cout << report_text(json, 2);
}

void EvalReport::add_likelihood(const std::vector<Tally>& items, const char* unit) {
  Tally all;
  for (const Tally& item : items) all += item;
  // `scaled`: what is shown of the ratio nats / count; it grows with the ratio, so ends of intervals stay ends.
  const auto line = [&](const char* name, const char* key, int64_t Tally::*count, const auto& scaled) {
    std::vector<double> nats, counts;
    for (const Tally& item : items) {
      if (item.*count == 0) continue;
      nats.push_back(item.nats);
      counts.push_back(static_cast<double>(item.*count));
    }
    const double whole = scaled(all.nats / static_cast<double>(all.*count));
    json[key] = {{"value", whole}};
    std::string shown = fmt::format("{:<15}{:10.4f}", name, whole);
    if (std::ssize(nats) >= kMinItems) {
      const Interval i = RatioBootstrap(std::ssize(nats), {.seed = options_.seed})(nats, counts);
      json[key]["interval95"] = {scaled(i.low), scaled(i.high)};
      shown += fmt::format("   95 % interval {:.4f} to {:.4f}", scaled(i.low), scaled(i.high));
    }
    say(shown);
  };
  json["tokens"] = all.tokens;
  json["bytes"] = all.bytes;
  json["items"] = items.size();
  line("perplexity", "perplexity", &Tally::tokens, [](double x) { return std::exp(x); });
  line("bits per byte", "bits_per_byte", &Tally::bytes, [](double x) { return x / std::log(2.0); });
  line("nats per token", "nats_per_token", &Tally::tokens, [](double x) { return x; });
  say(fmt::format("{} tokens, {} bytes, {} {}{}{}", all.tokens, all.bytes, items.size(), unit,
                  items.size() == 1 ? "" : "s",
                  std::ssize(items) >= kMinItems ? "" : fmt::format("; an interval needs {}", kMinItems)));
}

EvalRun::EvalRun(const EvalOptions& wanted)
    : options(wanted),
      library(open_library(wanted.model, wanted.cache, 1)),
      model(inside(library)),
      context(context_of(model, wanted.cache)),
      runner(model.runner(api::likelihood_room(model, wanted.cache.context, chosen_cache_type(wanted.cache)))),
      report(wanted),
      bos(api::bos_of(model)) {}

std::vector<double> EvalRun::log_probability(std::span<const TokenText> texts) {
  const auto of_tokens = watched("evaluating", std::ssize(texts), [&](const std::function<bool(size_t)>& finished) {
    return log_probabilities(runner, texts, finished);
  });
  std::vector<double> all;
  for (const std::vector<double>& of_text : of_tokens) {
    all.push_back(std::accumulate(of_text.begin(), of_text.end(), 0.0));
  }
  return all;
}

void EvalRun::add_nats(std::vector<Tally>& tallies, std::span<const TokenText> texts) {
  const std::vector<double> found = log_probability(texts);
  for (size_t i = 0; i < tallies.size(); ++i) tallies[i].nats = -found[i];
}

std::string EvalRun::bos_name() const {
  return bos ? std::string(model.tokenizer().token(*bos)) : "";
}

Json EvalRun::bos_json() const {
  return bos ? Json(bos_name()) : Json();
}

void EvalRun::check_length(const std::vector<int32_t>& ids, const std::string& what) const {
  QKV_CHECK(std::ssize(ids) <= context, what, " has ", ids.size(), " tokens but this model reads ", context,
            Hint("leave it out"));
}

}  // namespace qkv::app

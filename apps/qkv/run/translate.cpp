// qkv translate: lines in, their translations out, in the same order.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/standard_input.h"
#include "infer/beam_runner.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

constexpr size_t kSortedLines = 1024;  // lines that are sorted by length and translated together
constexpr size_t kWindowBytes = size_t{16} << 20;
constexpr int64_t kUsualRows = 64, kUsualSource = 256;

constexpr const char* kTranslateHelp =
    R"(Every line of standard input is one text; an empty line stays empty. Lines of similar length are translated together,
up to 1024 of those that are there, and come out in their order as soon as these are done; a translation does not depend on
the lines beside it. A line has at most 1 MiB.
What the options leave open is as generation_config.json beside the model says; without it 4 beams, at most 256 tokens.
A line that the model cannot read ends it: what was before that line is written.

Examples:
  qkv translate opus-mt-en-zh < in.en > out.zh
  qkv translate t5 --prefix "translate English to German: " --beam 1 < in.en > out.de
  qkv translate opus-mt-en-de --n 4 --json < in.en > out.jsonl)";

struct TranslateArguments {
  ModelOptions model;
  CacheOptions cache;
  std::optional<int64_t> beams, max_new;
  std::optional<double> length_penalty;
  int64_t n_best = 1, rows = kUsualRows;
  std::string prefix;
  bool json = false;
};

struct Line {
  std::string text;
  std::vector<int32_t> source;  // none: nothing to translate
};

class Translator {
 public:
  explicit Translator(const TranslateArguments& options)
      : options_(options),
        model_(open_model(options.model, options.cache, options.rows)),
        context_(context_of(model_, options.cache)),
        beam_(checked_beam_options()),
        runner_(model_.runner(room())) {}

  void run() {
    Progress progress("translating", 0);
    while (!ended_ && !stop_) {
      std::vector<Line> window = read_window();
      const std::vector<BeamRunner::Hypotheses> found = translated(window, progress);
      for (size_t i = 0; i < window.size(); ++i) print(window[i], first_line_ + static_cast<int64_t>(i), found[i]);
      std::cout.flush();
      if (!std::cout) return;  // nobody reads it any more; main says so
      first_line_ += std::ssize(window);
    }
    progress.finish();
    if (stop_) throw *stop_;
  }

 private:
  BeamOptions checked_beam_options() const {
    QKV_CHECK(model_.spec().has_source(), model_.path(), " is a ", model_.spec().family, ", which is ",
              name_of(model_.spec().kind), " and translates nothing",
              Hint("take an encoder-decoder such as Marian, BART or T5; or ask a decoder with  qkv run"));
    QKV_CHECK(!options_.max_new || *options_.max_new < context_, "--max-new is ", *options_.max_new,
              " but a text has at most ", context_, " tokens, its start included",
              Hint("use --max-new ", context_ - 1, " or less"));
    BeamOptions beam = beam_options(model_.defaults(),
                                    {.beams = options_.beams,
                                     .max_new = options_.max_new,
                                     .length_penalty = options_.length_penalty,
                                     .n_best = options_.n_best},
                                    {.context = context_, .has_source = true});
    BeamSearch checked(beam, model_.target_start());  // throws if an option is out of its range
    return beam;
  }

  RunOptions room() const {
    const int64_t texts = std::max<int64_t>(options_.rows / beam_.beams, 1);
    return {.cache = cache_type(model_, options_.cache),
            .positions = texts * beam_.beams * KvCache::whole_pages(beam_.max_length),
            .sources = std::max(KvCache::whole_pages(context_), texts * kUsualSource),
            .chunk = std::max(options_.rows, beam_.beams)};
  }

  // The lines that are there, at most kSortedLines and kWindowBytes; up to the end, or to a line that cannot be
  // translated: then stop_ says why.
  std::vector<Line> read_window() {
    std::vector<Line> window;
    const Tokenizer& tokenizer = model_.tokenizer();
    try {
      for (size_t bytes = 0; window.size() < kSortedLines && bytes < kWindowBytes;) {
        if (!window.empty() && !input_.ready()) break;  // somebody types, or another program writes: answer now
        std::optional<std::string> read = input_.next();
        if (!read) {
          ended_ = true;
          break;
        }
        Line line{.text = std::move(*read)};
        if (line.text.ends_with('\r')) line.text.pop_back();
        const int64_t number = first_line_ + std::ssize(window);
        QKV_CHECK(is_utf8(line.text), "line ", number, " is not UTF-8", Hint("convert it, for example with  iconv"));
        if (line.text.find_first_not_of(" \t") != std::string::npos) {
          line.source = tokenizer.encode(options_.prefix + line.text);
          QKV_CHECK(std::ssize(line.source) <= context_, "line ", number, " has ", line.source.size(),
                    " tokens but this model reads ", context_, Hint("cut it into sentences"));
        }
        bytes += line.text.size();
        window.push_back(std::move(line));
      }
    } catch (const Error& error) {
      stop_ = error;
    }
    return window;
  }

  std::vector<BeamRunner::Hypotheses> translated(const std::vector<Line>& window, Progress& progress) {
    std::vector<size_t> order;  // long ones first, so that those of a pass end together
    for (size_t i = 0; i < window.size(); ++i) {
      if (!window[i].source.empty()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return window[a].source.size() > window[b].source.size(); });
    std::vector<BeamRequest> requests;
    for (const size_t i : order) requests.push_back({.prompt = model_.target_start(), .source = window[i].source});
    BeamRunner run(runner_, requests, beam_, options_.rows);
    const InterruptWatch interrupt;
    while (run.step()) {
      progress.update(first_line_ - 1 + run.finished());
      if (interrupt.seen()) throw Interrupted{};
    }
    std::vector<BeamRunner::Hypotheses> found(window.size());
    for (size_t n = 0; n < order.size(); ++n) found[order[n]] = std::move(run.results()[n]);
    return found;
  }

  // On one line, whatever the model wrote.
  std::string text_of(const BeamSearch::Hypothesis& hypothesis) {
    std::string text = model_.tokenizer().decode(std::span(hypothesis.ids).subspan(1), {.skip_specials = true});
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
  }

  void print(const Line& line, int64_t number, const BeamRunner::Hypotheses& found) {
    if (options_.json) {
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      for (const BeamSearch::Hypothesis& h : found) {
        all.push_back({{"text", text_of(h)}, {"score", h.score}, {"ids", h.ids}});
      }
      const nlohmann::ordered_json out{{"line", number}, {"source", line.text}, {"translations", std::move(all)}};
      std::cout << json_text(out, -1) << '\n';
    } else if (options_.n_best == 1) {
      std::cout << (found.empty() ? "" : text_of(found[0])) << '\n';
    } else {
      for (const BeamSearch::Hypothesis& h : found)
        std::cout << fmt::format("{}\t{:.4f}\t{}\n", number, h.score, text_of(h));
    }
  }

  const TranslateArguments& options_;
  OpenModel model_;
  int64_t context_;  // most tokens of a text
  BeamOptions beam_;
  Runner runner_;
  int64_t first_line_ = 1;  // of the window
  InputLines input_;
  bool ended_ = false;
  std::optional<Error> stop_;
};

}  // namespace

void add_translate(Command app) {
  const Command command = app.add_command("translate", "Translate lines, or run another encoder-decoder task");
  const auto options = std::make_shared<TranslateArguments>();
  add_model_options(command, options->model);
  add_cache_options(command, options->cache);
  command.add_option("--beam", options->beams, "Beams; 1 is greedy").between(int64_t{1}, int64_t{256});
  command.add_option("--length-penalty", options->length_penalty, "Above 0 favours longer translations");
  command.add_option("--max-new", options->max_new, "Most tokens of a translation")
      .between(int64_t{1}, int64_t{1} << 20);
  command
      .add_option("--n", options->n_best,
                  "How many translations per line; above 1 as line number, score and text, with tabs")
      .between(int64_t{1}, int64_t{256});
  command.add_option("--batch", options->rows, "Most rows of a forward pass; a line has one per beam")
      .between(int64_t{1}, int64_t{4096})
      .show_default();
  command.add_option("--prefix TEXT", options->prefix, "Put before every line, as T5 expects");
  command.add_flag("--json", options->json, "Print a JSON object per line, and nothing else: text, score and ids");
  command.footer(kTranslateHelp);
  command.callback([options] { Translator(*options).run(); });
}

}  // namespace qkv::app

// qkv translate: lines in, their translations out, in the same order.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "api/judging.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/standard_input.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

constexpr size_t kSortedLines = 1024;  // lines that are sorted by length and translated together
constexpr size_t kWindowBytes = size_t{16} << 20;
constexpr int64_t kUsualRows = 64;

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
        model_(open_library(options.model, options.cache, options.rows)),
        translator_(inside(model_), {.beams = {.beams = options.beams,
                                               .max_new = options.max_new,
                                               .length_penalty = options.length_penalty,
                                               .n_best = options.n_best},
                                     .rows = options.rows,
                                     .context = options.cache.context,
                                     .cache = chosen_cache_type(options.cache)}) {}

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
  // The lines that are there, at most kSortedLines and kWindowBytes; up to the end, or to a line that cannot be
  // translated: then stop_ says why.
  std::vector<Line> read_window() {
    std::vector<Line> window;
    const Tokenizer& tokenizer = inside(model_).tokenizer();
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
          QKV_CHECK(std::ssize(line.source) <= translator_.context(), "line ", number, " has ", line.source.size(),
                    " tokens but this model reads ", translator_.context(), Hint("cut it into sentences"));
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
    std::vector<std::vector<int32_t>> sources;
    for (const Line& line : window) sources.push_back(line.source);
    const InterruptWatch interrupt;
    return translator_.translate(sources, [&](int64_t done) {
      progress.update(first_line_ - 1 + done);
      if (interrupt.seen()) throw Interrupted{};
      return true;
    });
  }

  void print(const Line& line, int64_t number, const BeamRunner::Hypotheses& found) {
    if (options_.json) {
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      for (const BeamSearch::Hypothesis& h : found) {
        all.push_back({{"text", translator_.text_of(h)}, {"score", h.score}, {"ids", h.ids}});
      }
      const nlohmann::ordered_json out{{"line", number}, {"source", line.text}, {"translations", std::move(all)}};
      std::cout << json_text(out, -1) << '\n';
    } else if (options_.n_best == 1) {
      std::cout << (found.empty() ? "" : translator_.text_of(found[0])) << '\n';
    } else {
      for (const BeamSearch::Hypothesis& h : found)
        std::cout << fmt::format("{}\t{:.4f}\t{}\n", number, h.score, translator_.text_of(h));
    }
  }

  const TranslateArguments& options_;
  api::Model model_;
  api::BeamTranslator translator_;
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

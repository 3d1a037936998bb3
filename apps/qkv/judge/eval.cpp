// qkv eval: how well a model predicts a text, tells right sentences from wrong ones, or expects translations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/loaded.h"
#include "eval/bootstrap.h"
#include "infer/generation_defaults.h"
#include "infer/likelihood.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kLargestFile = size_t{1} << 30;
constexpr int64_t kUsualWindow = 512;

constexpr const char* kHelp =
    R"(What --data is decides what is measured:
  a text                              perplexity: it is cut into windows, and every token is scored once, given what is before it in its window
  a .jsonl, or a folder of these      minimal pairs as BLiMP has them, an object with sentence_good and sentence_bad in each line; a pair is right if the model finds the whole good sentence more likely
  lines of source, tab, target        for models that translate: perplexity of the targets, given their sources

A window begins with the model's BOS token, if it has one; otherwise with the last token of the window before. The 95 %
intervals are by the bootstrap over windows, pairs or lines, from 1000 resamples.

Examples:
  qkv eval MODEL --data text.txt
  qkv eval MODEL --data text.txt --window 1024 --stride 512
  qkv eval MODEL --data blimp/ --json
  qkv eval opus-mt-en-de --data valid.tsv)";

struct Options {
  LoadOptions load;
  std::string data;
  int64_t window = 0, stride = 0;
  uint64_t seed = 0;
  bool json = false;
};

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

std::string checked_text(const fs::path& file) {
  std::string text = read_file(file, kLargestFile);
  if (!is_utf8(text)) {
    const std::vector<std::string_view> lines = lines_of(text);
    const auto bad = std::find_if_not(lines.begin(), lines.end(), is_utf8);
    QKV_FAIL(file.string(), ": line ", bad - lines.begin() + 1, " is not UTF-8",
             Hint("convert it, for example with  iconv"));
  }
  return text;
}

// --- how likely
// ---------------------------------------------------------------------------------------------------------

// What was asked about, of a window, a line, or all of them.
struct Tally {
  double nats = 0;
  int64_t tokens = 0, bytes = 0;
  Tally& operator+=(const Tally& other) {
    nats += other.nats;
    tokens += other.tokens;
    bytes += other.bytes;
    return *this;
  }
  double nats_per_token() const { return nats / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(nats_per_token()); }
  double bits_per_byte() const { return nats / std::log(2.0) / static_cast<double>(bytes); }
};

std::vector<double> sums(Runner& runner, std::span<const KnownText> texts) {
  Progress progress("evaluating", std::ssize(texts));
  const auto told = [&](size_t done) {
    progress.update(static_cast<int64_t>(done));
    return true;
  };
  std::vector<double> all;
  for (const std::vector<double>& of_text : log_probabilities(runner, texts, told)) {
    all.push_back(std::accumulate(of_text.begin(), of_text.end(), 0.0));
  }
  return all;
}

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  OrderedJson json;
  void say(const std::string& line) const {
    if (!options_.json) std::cout << wrapped(line, terminal_columns());
  }
  void finish() const {
    if (options_.json) std::cout << json.dump(2) << '\n';
  }

  template <class Value>
  Interval interval(size_t items, const Value& value) const {
    return bootstrap_interval(static_cast<int64_t>(items), value, {.seed = options_.seed});
  }

  // Perplexity and its kin of all items together.
  void add_likelihood(const std::vector<Tally>& items, const char* unit) {
    Tally all;
    for (const Tally& item : items) all += item;
    const auto line = [&](const char* name, const char* key, double (Tally::*value)() const) {
      const double whole = (all.*value)();
      const Interval i = interval(items.size(), [&](std::span<const int64_t> picked) {
        Tally some;
        for (const int64_t n : picked) some += items[static_cast<size_t>(n)];
        return (some.*value)();
      });
      json[key] = {{"value", whole}, {"interval95", {i.low, i.high}}};
      say(fmt::format("{:<15}{:10.4f}   95 % interval {:.4f} to {:.4f}", name, whole, i.low, i.high));
    };
    json["tokens"] = all.tokens;
    json["bytes"] = all.bytes;
    line("perplexity", "perplexity", &Tally::perplexity);
    line("bits per byte", "bits_per_byte", &Tally::bits_per_byte);
    line("nats per token", "nats_per_token", &Tally::nats_per_token);
    say(fmt::format("{} tokens, {} bytes{}", all.tokens, all.bytes,
                    items.size() == 1 ? fmt::format("; the intervals say nothing of a single {}", unit) : ""));
  }

 private:
  const Options& options_;
};

// --- the three modes
// ------------------------------------------------------------------------------------------------------

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

class Evaluation {
 public:
  explicit Evaluation(const Options& options) : options_(options), loaded_(options.load, room), report_(options) {
    const NamedTokens& named = loaded_.tokenizer().named();
    bos_ = named.bos ? named.bos : loaded_.spec().tokens.bos;
    if (bos_ && *bos_ >= loaded_.spec().vocabulary) bos_.reset();
  }

  void run() {
    const bool translates = loaded_.translates();
    if (translates) {
      translations();
    } else if (fs::is_directory(options_.data)) {
      minimal_pairs(files_in(options_.data));
    } else {
      const std::string text = checked_text(options_.data);
      if (begins_with_pair(text)) {
        minimal_pairs({options_.data});
      } else {
        text_windows(text);
      }
    }
    report_.finish();
  }

 private:
  // One text of a whole context, or a pass full of sentences.
  static RunOptions room(const Loaded& loaded) {
    QKV_CHECK(loaded.spec().kind != ModelSpec::Kind::encoder_only, loaded.path(), " is a ", loaded.spec().family,
              ": it sees the tokens after a hole too, so a text has no probability and no perplexity",
              Hint("take a decoder or an encoder-decoder"));
    constexpr int64_t kSentences = 1024;
    return {.positions = std::max(loaded.context(), kSentences)};
  }

  static std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    }
    QKV_CHECK(!files.empty(), folder.string(), " has no .jsonl files", Hint("a text is given as a file"));
    std::sort(files.begin(), files.end());
    return files;
  }

  // A text may look like anything, so what is no pair is no Error here.
  bool begins_with_pair(std::string_view text) const {
    try {
      return pair_in(text.substr(0, std::min(text.find('\n'), text.size())), options_.data).has_value();
    } catch (const Error&) {
      return false;
    }
  }

  std::vector<int32_t> encoded(std::string_view text) {
    return loaded_.tokenizer().encode(text, {.add_specials = false, .read_specials = false});
  }
  std::string lead_name() { return bos_ ? std::string(loaded_.tokenizer().token(*bos_)) : ""; }

  void text_windows(const std::string& text) {
    const Encoding whole = loaded_.tokenizer().encode_full(
        text, {.add_specials = false, .read_specials = false, .unit = OffsetUnit::bytes});
    const std::vector<int32_t>& ids = whole.ids;
    const auto first_byte = [&](int64_t token) {  // of those asked about: windows share the bytes of the text
      if (token == 0) return int64_t{0};
      return token == std::ssize(ids) ? std::ssize(text)
                                      : static_cast<int64_t>(whole.offsets[static_cast<size_t>(token)].begin);
    };
    const int64_t length = options_.window > 0 ? options_.window : std::min(kUsualWindow, loaded_.context());
    QKV_CHECK(length <= loaded_.context(), "--window is ", length, " but a text has at most ", loaded_.context(),
              " tokens", Hint("use --window ", loaded_.context(), " or less"));
    const std::vector<TextWindow> windows =
        windows_of(std::ssize(ids), {.length = length, .stride = options_.stride, .prefixed = bos_.has_value()});
    QKV_CHECK(!windows.empty(), options_.data, " has ", ids.size(), " tokens, too few to score one",
              Hint("give a longer text"));
    std::vector<KnownText> texts;
    std::vector<Tally> tallies;
    for (const TextWindow& w : windows) {
      KnownText& known = texts.emplace_back();
      if (bos_) known.ids.push_back(*bos_);
      known.first = std::ssize(known.ids) + w.begin - w.context;
      known.ids.insert(known.ids.end(), ids.begin() + w.context, ids.begin() + w.end);
      tallies.push_back({.tokens = w.end - w.begin, .bytes = first_byte(w.end) - first_byte(w.begin)});
    }
    report_.json = {{"mode", "text"},
                    {"windows", windows.size()},
                    {"window", length},
                    {"stride", options_.stride > 0 ? options_.stride : length - 1},
                    {"windows_begin_with", bos_ ? Json(lead_name()) : Json()}};
    report_.say(fmt::format("{} as a text: {} windows of at most {} tokens, {} of them new{}", options_.data,
                            windows.size(), length, options_.stride > 0 ? options_.stride : length - 1,
                            bos_ ? ", each begins with " + lead_name() : "; the text's first token is not scored"));
    add_nats(tallies, sums(loaded_.runner(), texts));
    report_.add_likelihood(tallies, "window");
  }

  static void add_nats(std::vector<Tally>& tallies, const std::vector<double>& log_probabilities) {
    for (size_t i = 0; i < tallies.size(); ++i) tallies[i].nats = -log_probabilities[i];
  }

  KnownText sentence(const std::string& text, const std::string& what) {
    KnownText known;
    if (bos_) known.ids.push_back(*bos_);
    const std::vector<int32_t> ids = encoded(text);
    known.ids.insert(known.ids.end(), ids.begin(), ids.end());
    QKV_CHECK(known.ids.size() > 1, what, ": ", printable(text), " has too few tokens to score one",
              Hint("a pair has two sentences"));
    check_length(known.ids, what);
    return known;
  }

  void check_length(const std::vector<int32_t>& ids, const std::string& what) const {
    QKV_CHECK(std::ssize(ids) <= loaded_.context(), what, " has ", ids.size(), " tokens but this model reads ",
              loaded_.context(), Hint("leave it out"));
  }

  void minimal_pairs(const std::vector<fs::path>& files) {
    QKV_CHECK(options_.window == 0 && options_.stride == 0, options_.data,
              " has minimal pairs, which are read whole, but --window or --stride was given", Hint("leave them out"));
    report_.json = {{"mode", "minimal pairs"}, {"windows_begin_with", bos_ ? Json(lead_name()) : Json()}};
    report_.say(
        fmt::format("{} as minimal pairs{}", options_.data,
                    bos_ ? ": sentences begin with " + lead_name() : "; a sentence's first token is not scored"));
    OrderedJson of_files = OrderedJson::array();
    std::vector<int64_t> all;
    for (const fs::path& file : files) {
      const std::vector<int64_t> right = right_pairs(file);
      all.insert(all.end(), right.begin(), right.end());
      of_files.push_back(accuracy(file.stem().string(), right));
    }
    const OrderedJson whole = accuracy("all", all);
    report_.json["accuracy"] = whole["accuracy"];
    report_.json["interval95"] = whole["interval95"];
    report_.json["pairs"] = whole["pairs"];
    report_.json["files"] = std::move(of_files);
  }

  // 1 for each pair whose good sentence is more likely.
  std::vector<int64_t> right_pairs(const fs::path& file) {
    const std::string text = checked_text(file);
    std::vector<KnownText> sentences;
    int64_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      const std::string what = fmt::format("{}: line {}", file.string(), ++number);
      if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
      const std::optional<MinimalPair> pair = pair_in(line, what);
      QKV_CHECK(pair.has_value(), what, " is no minimal pair",
                Hint("every line is an object with the texts sentence_good and sentence_bad"));
      sentences.push_back(sentence(pair->good, what));
      sentences.push_back(sentence(pair->bad, what));
    }
    QKV_CHECK(!sentences.empty(), file.string(), " has no pairs", Hint("there is nothing to evaluate"));
    const std::vector<double> found = sums(loaded_.runner(), sentences);
    std::vector<int64_t> right;
    for (size_t i = 0; i < found.size(); i += 2) right.push_back(found[i] > found[i + 1] ? 1 : 0);
    return right;
  }

  OrderedJson accuracy(const std::string& name, const std::vector<int64_t>& right) const {
    const auto share = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(right.size()); };
    const double whole = share(std::accumulate(right.begin(), right.end(), int64_t{0}));
    const Interval i = report_.interval(right.size(), [&](std::span<const int64_t> picked) {
      int64_t count = 0;
      for (const int64_t n : picked) count += right[static_cast<size_t>(n)];
      return share(count);
    });
    report_.say(fmt::format("{:>6.2f} %   95 % interval {:.2f} to {:.2f}   {:>6} pairs   {}", 100 * whole, 100 * i.low,
                            100 * i.high, right.size(), name));
    return {{"name", name}, {"pairs", right.size()}, {"accuracy", whole}, {"interval95", {i.low, i.high}}};
  }

  void translations() {
    const GenerationDefaults defaults =
        generation_defaults(loaded_.path(), loaded_.checkpoint().config, loaded_.spec().vocabulary);
    QKV_CHECK(defaults.tokens.decoder_start.has_value(), loaded_.path(),
              " does not say which token a target starts with", Hint("config.json should have decoder_start_token_id"));
    // Marian cuts targets by a model of their own.
    const fs::path target_file = fs::path(loaded_.path()) / "target.spm";
    const Tokenizer target = fs::exists(target_file) ? Tokenizer::load(target_file).whole_texts() : loaded_.tokenizer();
    const std::string text = checked_text(options_.data);
    std::vector<KnownText> texts;
    std::vector<Tally> tallies;
    int64_t number = 0;
    for (const std::string_view line : lines_of(text)) {
      const std::string what = fmt::format("{}: line {}", options_.data, ++number);
      const size_t tab = line.find('\t');
      QKV_CHECK(tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos, what, " has ",
                std::count(line.begin(), line.end(), '\t'), " tabs but must have one",
                Hint("a line is a source, a tab, and its translation"));
      KnownText& known = texts.emplace_back();
      known.source = loaded_.tokenizer().encode(line.substr(0, tab));
      known.ids = target.encode(line.substr(tab + 1));
      QKV_CHECK(!known.source.empty() && !known.ids.empty(), what, " has a source of ", known.source.size(),
                " tokens and a target of ", known.ids.size(), Hint("both need at least one"));
      known.ids.insert(known.ids.begin(), *defaults.tokens.decoder_start);
      check_length(known.source, what);
      check_length(known.ids, what);
      tallies.push_back(
          {.tokens = std::ssize(known.ids) - 1, .bytes = std::ssize(line) - static_cast<int64_t>(tab) - 1});
    }
    QKV_CHECK(!texts.empty(), options_.data, " has no lines", Hint("there is nothing to evaluate"));
    report_.json = {{"mode", "pairs"}, {"lines", texts.size()}};
    report_.say(fmt::format("{} as sources and targets: {} targets, given their sources", options_.data, texts.size()));
    add_nats(tallies, sums(loaded_.runner(), texts));
    report_.add_likelihood(tallies, "line");
  }

  const Options& options_;
  Loaded loaded_;
  Report report_;
  std::optional<int32_t> bos_;
};

}  // namespace

void add_eval(Command app) {
  const Command command = app.add_command("eval", "Perplexity, bits per byte, accuracy on minimal pairs");
  const auto options = std::make_shared<Options>();
  add_load_options(command, options->load);
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
  command.footer(kHelp);
  command.callback([options] { Evaluation(*options).run(); });
}

}  // namespace qkv::app

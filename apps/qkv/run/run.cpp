// qkv run: a prompt goes in, what the model writes comes out.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "api/generation.h"
#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "common/commands.h"
#include "common/interrupt.h"
#include "common/model_options.h"
#include "common/standard_input.h"
#include "common/text_flags.h"
#include "common/token_ids.h"

namespace qkv::app {
namespace {

constexpr int64_t kMostAtOnce = 32;

struct RunArguments {
  ModelOptions model;
  CacheOptions cache;
  TextFlags text;
  std::string prompt;
  int64_t texts = 1, logprobs = -1, beam = 0;
  std::optional<double> length_penalty;
  bool ids = false, json = false, stats = false;
};

std::string read_prompt(const std::string& given) {
  if (given != "-") return given;
  std::string text = read_standard_input();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string joined(const api::Generated& written) {
  std::string ids;
  for (const api::Token& token : written.tokens) ids += (ids.empty() ? "" : " ") + std::to_string(token.id);
  return ids;
}

Json token_json(const Tokenizer* tokenizer, int32_t id, double logprob) {
  Json json{{"id", id}, {"logprob", logprob}};
  if (tokenizer == nullptr || !tokenizer->has(id)) return json;
  json["token"] = tokenizer->is_special(id) ? std::string(tokenizer->token(id)) : tokenizer->bytes_of(id);
  return json;
}

Json written_json(const api::Generated& written, const Tokenizer* tokenizer, const RunArguments& options) {
  Json json{{"prompt_tokens", written.prompt_tokens},
            {"ended", api::name_of(written.ended)},
            {"read_seconds", written.read_seconds},
            {"write_seconds", written.write_seconds}};
  Json& ids = json["ids"] = Json::array();
  for (const api::Token& token : written.tokens) ids.push_back(token.id);
  if (tokenizer != nullptr) json["text"] = written.text;
  if (!written.stop.empty()) json["stop"] = written.stop;
  if (options.logprobs < 0) return json;
  Json& logprobs = json["logprobs"] = Json::array();
  for (const api::Token& token : written.tokens) {
    Json one = token_json(tokenizer, token.id, token.logprob);
    Json& others = one["most_likely"] = Json::array();
    for (const auto& [id, logprob] : token.most_likely) others.push_back(token_json(tokenizer, id, logprob));
    logprobs.push_back(std::move(one));
  }
  return json;
}

std::string stats_line(const api::Generated& written) {
  const auto count = static_cast<double>(written.tokens.size());
  std::string line = fmt::format("{} tokens read in {:.2f} s", written.prompt_tokens, written.read_seconds);
  if (written.read_seconds > 0) {
    line += fmt::format(" ({:.1f}/s)", static_cast<double>(written.prompt_tokens) / written.read_seconds);
  }
  line += fmt::format(", {} written", written.tokens.size());
  if (written.write_seconds > 0) line += fmt::format(" ({:.1f}/s)", (count - 1) / written.write_seconds);
  return line + fmt::format(", ended: {}", api::name_of(written.ended));
}

void print_text(const std::string& text) {
  std::cout << text << (text.ends_with('\n') ? "" : "\n") << std::flush;
}

// All texts of one prompt, side by side.
class Run {
 public:
  explicit Run(const RunArguments& options)
      : options_(options),
        chosen_(generate_options(options.text)),
        model_(open_library(options.model, options.cache, texts_at_once(options))),
        tokenizer_(options.ids ? nullptr : &inside(model_).tokenizer()),
        prompt_(library_text({.text = read_prompt(options.prompt), .target = {}, .ids = options.ids})) {
    chosen_.logprobs = options.logprobs;
  }

  void run() {
    const double temperature = request_of(inside(model_), chosen_).options.sampling.temperature;
    QKV_CHECK(options_.beam > 0 || options_.texts == 1 || temperature > 0, "--n asks for ", options_.texts,
              " texts but the most likely token is always the same", Hint("add --temperature 0.8 or the like"));
    if (options_.beam > 0) return search();
    const InterruptWatch interrupt;
    std::vector<api::Generation> texts;
    for (int64_t n = 0; n < options_.texts; ++n) {
      texts.push_back(model_.start(prompt_, chosen_));
      ++chosen_.seed;
    }
    bool told = false;
    for (api::Generation& text : texts) {
      while (const std::optional<api::Piece> piece = text.next()) {
        if (streams() && !(std::cout << piece->text << std::flush)) text.cancel();
        if (!interrupt.seen() || told) continue;
        for (const api::Generation& each : texts) each.cancel();
        told = true;
      }
      written_.push_back(text.result());
    }
    finish(told);
  }

 private:
  static int64_t texts_at_once(const RunArguments& options) { return std::min(options.texts, kMostAtOnce); }
  bool streams() const { return !options_.json && options_.texts == 1 && tokenizer_ != nullptr; }

  // The best hypotheses of a beam search.
  void search() {
    const TextFlags& asked = options_.text;
    const InterruptWatch interrupt;
    written_ = model_.search(prompt_, {.beams = options_.beam,
                                       .n = options_.texts,
                                       .max_new = asked.max_new,
                                       .no_repeat_ngram = asked.no_repeat_ngram,
                                       .length_penalty = options_.length_penalty,
                                       .repetition_penalty = asked.repetition_penalty,
                                       .go_on = [&] { return !interrupt.seen(); }});
    if (written_.empty()) throw Interrupted{};
    if (streams()) std::cout << written_[0].text;
    finish(false);
  }

  void finish(bool interrupted) const {
    if (options_.json) {
      print_json();
    } else if (streams()) {
      if (!written_[0].text.ends_with('\n')) std::cout << '\n';
    } else {
      for (size_t n = 0; n < written_.size(); ++n) {
        if (written_.size() > 1) std::cout << fmt::format("[{} of {}]\n", n + 1, written_.size());
        print_text(tokenizer_ != nullptr ? written_[n].text : joined(written_[n]));
      }
    }
    std::cout.flush();
    bool nothing = true;
    for (const api::Generated& written : written_) {
      if (options_.stats || isatty(STDERR_FILENO) != 0) std::cerr << stats_line(written) << '\n';
      QKV_CHECK(written.ended != api::Ended::failed, "writing failed: ", written.error, Hint(written.hint));
      nothing = nothing && written.tokens.empty();
    }
    if (interrupted && nothing) throw Interrupted{};
  }

  void print_json() const {
    Json all = Json::array();
    for (const api::Generated& written : written_) all.push_back(written_json(written, tokenizer_, options_));
    const Json json = written_.size() == 1 ? all[0] : Json{{"texts", all}};
    std::cout << json_text(json) << '\n';
  }

  const RunArguments& options_;
  api::GenerateOptions chosen_;  // read before the model: a schema may be wrong
  api::Model model_;
  const Tokenizer* tokenizer_;  // none if ids are all that is asked for
  api::Text prompt_;
  std::vector<api::Generated> written_;
};

// A beam search knows only some of the options; none is left aside in silence.
void check_beam(Command command, const RunArguments& options) {
  QKV_CHECK(options.beam > 0 || !options.length_penalty, "--length-penalty ", *options.length_penalty,
            " without --beam", Hint("add --beam 4 or the like: only a beam search compares lengths"));
  if (options.beam == 0) return;
  for (const char* name :
       {"--temperature", "--top-k", "--top-p", "--min-p", "--typical-p", "--seed", "--presence-penalty",
        "--frequency-penalty", "--logit-bias", "--stop", "--draft", "--logprobs", "--json-schema"}) {
    QKV_CHECK(!command.option(name).given(), name, " with --beam ", options.beam,
              ": a beam search looks for the most likely text and does not have this option",
              Hint("with --beam go --n, --max-new, --length-penalty, --repetition-penalty and --no-repeat-ngram"));
  }
}

}  // namespace

void add_run(Command app) {
  const Command command = app.add_command("run", "Continue a prompt, or translate it");
  const auto options = std::make_shared<RunArguments>();
  add_model_options(command, options->model);
  add_cache_options(command, options->cache);
  command
      .add_option("PROMPT", options->prompt,
                  "The text to continue, or to translate; - reads standard input, at most 64 MiB")
      .required();
  add_text_flags(command, options->text);
  command
      .add_option("--n", options->texts,
                  "How many texts to write, with seeds SEED, SEED + 1, ...; with --beam the N best")
      .between(int64_t{1}, int64_t{1024});
  command
      .add_option("--logprobs", options->logprobs,
                  "With --json: log-probabilities, and those of the N most likely tokens")
      .between(int64_t{0}, int64_t{1024});
  command.add_option("--beam", options->beam, "Beam search with N beams instead of choosing token by token")
      .between(int64_t{1}, int64_t{64});
  command.add_option("--length-penalty", options->length_penalty, "For --beam: above 0 favours longer texts")
      .between(-10.0, 10.0);
  command.add_flag("--ids", options->ids, "Token ids instead of text, in and out; needs no tokenizer");
  command.add_flag("--json", options->json, "Print JSON, and nothing else: text, ids, how it ended, times");
  command.add_flag("--stats", options->stats, "Token counts and speeds on standard error, even without a terminal");
  command.footer(std::string(kTextFlagsHelp) + R"(

The output is what follows the prompt, and a line break. On a terminal control characters of the text are shown escaped. Special tokens written in the prompt are those tokens; the line
break at the end of standard input is not a part of it. Ctrl-C ends the text: what is written stays, and the exit code is 0,
or 130 if there is nothing yet.

Examples:
  qkv run MODEL "Once upon a time" --max-new 100
  qkv run MODEL "床前明月光" --temperature 0.8 --top-p 0.95 --seed 7
  qkv run MODEL --stop "Q:" --json "Q: What is a key? A:" --logprobs 5
  qkv run MODEL - --n 4 --temperature 1 < prompt.txt

With --json-schema the text is one JSON value that satisfies the schema, or its beginning where --max-new cuts it:
  echo '{"enum": ["yes", "no"]}' > s.json
  qkv run MODEL "Is 7 a prime? " --json-schema s.json
Keywords that are not supported are errors; docs/structured-output.md has the list.)");
  command.callback([command, options] {
    QKV_CHECK(options->logprobs < 0 || options->json, "--logprobs ", options->logprobs, " without --json",
              Hint("add --json: only there is room for them"));
    QKV_CHECK(!options->ids || options->text.stop.empty(), "--stop ", printable(options->text.stop.front()),
              " with --ids", Hint("texts are looked for where a tokenizer makes them"));
    QKV_CHECK(!options->ids || options->text.json_schema.empty(), "--json-schema ",
              printable(options->text.json_schema), " with --ids",
              Hint("a schema is about text, which needs a tokenizer"));
    check_beam(command, *options);
    Run(*options).run();
  });
}

}  // namespace qkv::app

// qkv world: stories of the built-in world, one per line, or their labels.
#include "world/world.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "world/labels.h"
#include "world/ngrams.h"

namespace qkv::app {
namespace {

constexpr const char* kWorldExamples = R"(Examples:
  qkv world --lang en --seed 7 --lines 20             twenty stories in English, one per line
  qkv world --lang zh --seed 7 --lines 20             the same twenty in Chinese
  qkv world --lang pairs --lines 1000 > pairs.tsv     sentence by sentence: English, a tab, Chinese
  qkv world --lang zh --labels conllu --lines 5       words, parts of speech, heads and relations
  qkv world --lang en --labels coref --lines 5        each pronoun with its antecedent, each name with its first mention
  qkv world --lang en --labels answers --lines 5      questions, and where in the text the answer stands
  qkv world --lang en --labels align --lines 5        words of English sentences and those that translate them, as JSON
  qkv world --lang en --json --lines 5                text with all its labels, one object per line

  qkv world --lang zh --ngrams 8 --lines 20000        how many 8-grams of other stories stand in these

The same seed gives the same stories in both languages; line i never depends on the others.)";

struct WorldArguments {
  std::string lang = "en", labels;
  uint64_t seed = 1;
  int64_t lines = 20;
  int ngrams = 0;
  bool json = false;
};

std::string id_of(const WorldArguments& options, uint64_t index) {
  return fmt::format("world-{}-{}-{}", options.seed, index, options.lang);
}

std::string json_line(const WorldArguments& options, const Story& story, uint64_t index) {
  nlohmann::ordered_json out{{"id", id_of(options, index)}, {"kind", story.kind}};
  if (options.lang == "pairs") {
    out["en"] = story.english.text;
    out["zh"] = story.chinese.text;
    return out.dump() + "\n";
  }
  const AnnotatedText& annotated = story.in(options.lang == "en" ? Language::english : Language::chinese);
  const bool all = options.labels.empty();
  out["text"] = annotated.text;
  if (all || options.labels == "coref") out["mentions"] = mentions_json(annotated);
  if (all || options.labels == "answers") out["answers"] = answers_json(annotated);
  if (all || options.labels == "brackets") out["brackets"] = brackets_json(annotated);
  if (all) out["conllu"] = to_conllu(annotated, id_of(options, index));
  return out.dump() + "\n";
}

// Share of the n-grams of 1000 stories of the next seed that occur in the stories asked for.
void print_ngrams(const WorldArguments& options) {
  constexpr uint64_t kHeldOut = 1000;
  QKV_CHECK(options.lang != "pairs" && options.labels.empty(), "--ngrams wants one language and no labels",
            Hint("say --lang en or --lang zh, and leave --labels out"));
  const Language language = options.lang == "zh" ? Language::chinese : Language::english;
  SeenNgrams ngrams(language, options.ngrams);
  const World world(options.seed), other(options.seed + 1);
  Progress progress("reading stories", options.lines);
  for (int64_t i = 0; i < options.lines; ++i) {
    ngrams.add(world.text(static_cast<uint64_t>(i), language));
    progress.update(i + 1);
  }
  progress.finish();
  SeenNgrams::Share sum;
  for (uint64_t i = 0; i < kHeldOut; ++i) {
    const SeenNgrams::Share share = ngrams.of(other.text(i, language));
    sum.seen += share.seen;
    sum.all += share.all;
  }
  const double share = static_cast<double>(sum.seen) / static_cast<double>(std::max<uint64_t>(sum.all, 1));
  const char* unit = language == Language::english ? "words" : "characters";
  if (options.json) {
    std::cout << json_text(nlohmann::ordered_json{{"n", options.ngrams},
                                                  {"of", unit},
                                                  {"stories", options.lines},
                                                  {"held_out", kHeldOut},
                                                  {"ngrams", sum.all},
                                                  {"seen", sum.seen},
                                                  {"share", share}})
              << '\n';
    return;
  }
  std::cout << fmt::format(
      "{:.1f} % of the {} {}-grams of {} in {} stories of seed {} occur in {} stories of seed {}\n", 100 * share,
      sum.all, options.ngrams, unit, kHeldOut, options.seed + 1, options.lines, options.seed);
}

void print_world(const WorldArguments& options) {
  if (options.ngrams > 0) return print_ngrams(options);
  const bool pairs = options.lang == "pairs";
  QKV_CHECK(!pairs || options.labels.empty(), "--labels ", options.labels, " wants one language, but --lang is pairs",
            Hint("say --lang en or --lang zh"));
  QKV_CHECK(!(options.json && options.labels == "conllu"), "--labels conllu is a format of its own, not JSON",
            Hint("leave out --json, or leave out --labels: then each line's JSON holds everything"));
  const World world(options.seed);
  const Language language = options.lang == "zh" ? Language::chinese : Language::english;
  const auto lines = static_cast<uint64_t>(options.lines);
  std::optional<Progress> progress;  // on a terminal the stories are seen
  if (::isatty(STDOUT_FILENO) == 0) progress.emplace("writing stories", options.lines);
  for (uint64_t i = 0; i < lines && std::cout; ++i) {
    if (options.labels == "align") {
      std::cout << to_alignments(world.story(i), language);
    } else if (options.json || (!options.labels.empty() && options.labels != "conllu")) {
      std::cout << json_line(options, world.story(i), i);
    } else if (options.labels == "conllu") {
      std::cout << to_conllu(world.story(i).in(language), id_of(options, i));
    } else if (pairs) {
      std::cout << to_pairs(world.story(i));
    } else {
      std::cout << world.text(i, language) << '\n';
    }
    if (progress) progress->update(static_cast<int64_t>(i) + 1);
  }
  std::cout.flush();
  if (progress && std::cout) progress->finish();
}

}  // namespace

void add_world(Command app) {
  const Command command = app.add_command("world", "Stories of the built-in world, with labels on request");
  const auto options = std::make_shared<WorldArguments>();
  command.add_option("--lang", options->lang, "Language, or pairs of English and Chinese sentences")
      .one_of({"en", "zh", "pairs"})
      .show_default();
  command.add_option("--seed", options->seed, "Seed: which stories").show_default();
  command.add_option("--lines", options->lines, "How many stories")
      .between(int64_t{0}, std::numeric_limits<int64_t>::max())
      .show_default();
  command.add_option("--labels", options->labels, "Labels instead of plain text")
      .one_of({"conllu", "coref", "answers", "brackets", "align"});
  command.add_option("--ngrams N", options->ngrams, "Share of the N-grams of 1000 other stories that occur in these")
      .between(1, 100);
  command.add_flag("--json", options->json, "Print one JSON object per story, and nothing else");
  command.footer(kWorldExamples);
  command.callback([options] { print_world(*options); });
}

}  // namespace qkv::app

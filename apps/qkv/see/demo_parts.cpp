#include "see/demo_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/texts.h"
#include "inspect/heads/head_labels.h"
#include "inspect/heads/head_roles.h"
#include "open/builtin_models.h"
#include "open/continuation.h"
#include "open/world_texts.h"
#include "see/demo_words.h"
#include "text/sentence_end.h"

namespace qkv::app {
namespace {

constexpr int64_t kDemoLength = 256;  // tokens of a text

struct BestHead {
  std::string name;
  Estimate score;
  int64_t heads = 0;  // that have the role
};

// In the order of the rules, so that what every model shows comes first.
std::vector<std::pair<const RoleRule*, BestHead>> best_heads(const ModelSpec& spec, const RoleScores& scores) {
  std::map<const RoleRule*, BestHead> best;
  for (const HeadScore& head : scores.heads) {
    for (const Role& role : roles_of(head)) {
      BestHead& so_far = best[role.rule];
      if (so_far.heads++ == 0 || role.score.mean > so_far.score.mean) {
        so_far.name = name_of(spec, head.id);
        so_far.score = role.score;
      }
    }
  }
  return {best.begin(), best.end()};
}

// Relations worth a line, of those that gold labels know.
struct Relation {
  const char *label, *direction, *words, *words_zh;
};
constexpr Relation kRelations[] = {
    {"coreference of a pronoun", "mention to antecedent", "a pronoun to whom it means", "代词指向所指的人"},
    {"nsubj", "head to dependent", "a verb to its subject", "动词指向主语"},
    {"det", "head to dependent", "a noun to its determiner", "名词指向限定词"},
};

// Those that a head finds, with the head.
Json show_relations(const DemoOptions& options, Reader& reader, const OpenModel& model, int64_t tokens) {
  std::vector<LabelledText> stories;
  for (const AnnotatedText& story : labelled_world(model, options.words("world", "world:zh"), {.tokens = tokens})) {
    stories.push_back(labelled(story));
  }
  std::vector<std::string> names;
  for (const Relation& relation : kRelations) names.emplace_back(relation.label);
  const LabelScores scores =
      watched(options.words("asking for labels", "对照标注"), std::ssize(stories),
              [&](const Reader::Finished& finished) {
                return label_scores(reader, model.tokenizer(), stories,
                                    {.length = kDemoLength, .names = names, .finished = finished});
              },
              {.chinese = options.chinese()});
  const std::vector<HeadId> heads = all_heads(model.spec());
  Json found = Json::array();
  for (const Relation& relation : kRelations) {
    const auto label = std::find_if(scores.labels.begin(), scores.labels.end(), [&](const LabelScore& one) {
      return one.name == relation.label && one.direction == relation.direction && one.found();
    });
    if (label == scores.labels.end()) continue;
    const std::string head = name_of(model.spec(), heads[label->head]);
    const double guess = label->best_baseline().score.mean;
    std::cout << "  " << in_cells(head, 6) << in_cells(options.words(relation.words, relation.words_zh), 28)
              << fmt::format(fmt::runtime(options.words("{:.0f} %, a guess without attention {:.0f} %\n",
                                                        "{:.0f}%，不看注意力只能猜对 {:.0f}%\n")),
                             100 * label->judged.mean, 100 * guess);
    found.push_back({{"label", relation.label},
                     {"head", head},
                     {"score", label->judged.mean},
                     {"guess", guess},
                     {"n", label->judged.n}});
  }
  return found;
}

}  // namespace

void print_paragraph(const char* heading, Ink ink, const std::string& text) {
  std::cout << "  " << inked(Ink::dim, heading) << '\n';
  for (const std::string& line : wrap(escaped(text), std::max(terminal_columns(), 40) - 4)) {
    std::cout << "    " << inked(ink, line) << '\n';
  }
}

void print_role(const std::string& head, std::string_view role, const Estimate& score, bool chinese) {
  std::cout << "  " << in_cells(head, 6) << in_cells(role_words(role, chinese), 28) << fmt::format("{:.3f}", score.mean)
            << (score.has_interval() ? fmt::format(" [{:.3f}, {:.3f}]", score.low, score.high) : "")
            << fmt::format(" n={}, texts={}\n", score.n, score.texts);
}

const TokenText& text_to_continue(std::span<const TokenText> texts) {
  const auto longer =
      std::find_if(texts.begin(), texts.end(), [](const TokenText& text) { return text.ids.size() >= 48; });
  return longer == texts.end() ? texts.front() : *longer;
}

Json show_writing(const DemoOptions& options, const OpenModel& model, const TokenText& text) {
  const ContinuationOptions asked{.prompt = "", .start = text, .max_new = 40};
  const std::string prompt = continuation_prompt(model, asked),
                    written = up_to_sentence_end(greedy_continuation(model, asked, nullptr));
  print_paragraph(options.words("It reads", "模型读入的文本"), Ink::plain, prompt);
  print_paragraph(options.words("It writes", "模型写的文本"), Ink::green, written);
  print_paragraph(options.words("The story, which it has never seen, goes on", "故事的原文（它没有见过）"), Ink::dim,
                  text.text.substr(std::min(prompt.size(), text.text.size())));
  return {{"prompt", prompt}, {"text", written}};
}

Json show_builtin(const DemoOptions& options) {
  constexpr const char* kName = "world";
  const auto built_in = std::find_if(builtin_models().begin(), builtin_models().end(),
                                     [&](const BuiltinModel& model) { return model.name == kName; });
  try {
    check_builtin(*built_in);
  } catch (const Error& error) {
    std::cout << fmt::format(
                     fmt::runtime(options.words("The demo goes on without it: {}\n", "没有它，演示照常进行：{}\n")),
                     error.message())
              << wrapped(error.hint(), std::max(terminal_columns(), 40), 2);
    return nullptr;
  }
  const api::Model library =
      open_library({.path = built_in->folder().string(), .dtype = "auto", .compute = options.compute});
  const OpenModel& model = looking_inside(library);
  constexpr int64_t kTokens = 12000;  // so many that intervals are narrow
  const std::vector<TokenText> texts =
      read_texts(model, {.data = options.words("world", "world:zh"), .tokens = kTokens, .length = kDemoLength});
  Json told{{"model", kName}, {"written", show_writing(options, model, text_to_continue(texts))}};
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  const RoleScores scores = watched(options.words("reading heads", "观察各个头"), std::ssize(texts),
                                    [&](const Reader::Finished& finished) {
                                      return head_roles(reader, &model.tokenizer(), texts, {.finished = finished});
                                    },
                                    {.chinese = options.chinese()});
  std::cout << options.words("  Jobs nobody gave its heads; of each the best head\n",
                             "  没有人给这些头分配任务；每种任务列出最好的头\n");
  told["roles"] = Json::array();
  for (const auto& [rule, best] : best_heads(model.spec(), scores)) {
    print_role(best.name, rule->name, best.score, options.chinese());
    told["roles"].push_back({{"name", rule->name},
                             {"head", best.name},
                             {"score", best.score.mean},
                             {"low", best.score.low},
                             {"high", best.score.high},
                             {"n", best.score.n},
                             {"heads", best.heads}});
  }
  if (told["roles"].empty()) {
    std::cout << options.words("  none found\n", "  没有找到\n");
  } else {
    constexpr int64_t kLabelled = 20000;  // pairs of texts for patching are few
    told["relations"] = show_relations(options, reader, model, kLabelled);
  }
  return told;
}

}  // namespace qkv::app

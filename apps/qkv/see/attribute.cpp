// qkv attribute: which heads and feed-forwards raise the logit of one token over another's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "api/measuring.h"
#include "api/one_token.h"
#include "api/patching.h"
#include "api/texts.h"
#include "base/error.h"
#include "base/printable.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/token_ids.h"
#include "inspect/texts/shown_tokens.h"

namespace qkv::app {
namespace {

constexpr const char* kAttributeExamples =
    R"(At one token of the text, the logit of --for minus the logit of --against, as a sum with one term for the embedding,
every head, every feed-forward and the biases. Without --for it is the model's top guess, without --against its second
guess (or, if that is --for, its top guess).

--for and --against are one token each. In most vocabularies the space before a word belongs to its token: --for " mat".
qkv tokenize shows where a text is split. --for "#403" is the token with this number.

Examples:
  qkv attribute MODEL "The capital of France is"
  qkv attribute MODEL "The cat sat on the" --for " mat" --against " dog"
  qkv attribute MODEL "Tom saw Anna. He" --token 2 --json
  qkv attribute T5 "Guten Morgen" --target "Good"    heads that attend to the source are X0H0, ...
  qkv attribute MODEL --ids "1 403 407" --for 12     token ids, as they are; needs no tokenizer)";

struct AttributeArguments {
  ModelOptions model;
  GivenText given;
  std::optional<std::string> in_favour, against;
  ReportOptions report;
  std::optional<int64_t> token;
};

using Report = nlohmann::ordered_json;

void print_attribute(const Attribution& found, const std::string& title, const std::string& how) {
  std::vector<AttributedPart> sorted = found.parts;
  std::stable_sort(sorted.begin(), sorted.end(), [](const AttributedPart& a, const AttributedPart& b) {
    return std::abs(a.share) > std::abs(b.share);
  });
  const double most = std::max(std::abs(sorted.front().share), 1e-30);
  const int room = std::clamp((terminal_columns() - 23) / 2, 5, 30);
  std::cout << inked(Ink::bold, title) << "\n"
            << inked(Ink::dim, "left of the axis: for the second; right of it: for the first") << "\n\n";
  for (const AttributedPart& part : sorted) {
    std::cout << fmt::format("{:<9} {:+9.4f}  ", part.name, part.share)
              << inked(part.share < 0 ? Ink::red : Ink::green, signed_bar(part.share / most, room)) << '\n';
  }
  std::cout << fmt::format("\nsum {:+.5f}, the model's difference {:+.5f}, apart {:.1e}\n", found.sum, found.difference,
                           std::abs(found.sum - found.difference))
            << wrapped(how, terminal_columns());
}

void attribute(const AttributeArguments& options) {
  const api::Model library = open_library(options.model);
  const OpenModel& model = looking_inside(library);
  const Tokenizer* tokenizer = api::answering_tokenizer(model);
  const auto shown = [&](int32_t id) {
    return tokenizer != nullptr && tokenizer->has(id) ? token_text(*tokenizer, id) : "#" + std::to_string(id);
  };
  QKV_CHECK(model.spec().has_source() || options.given.target.empty(), "--target, but a ", model.spec().family,
            " has no source and target",
            Hint("--target is what a model that translates has written; the token to explain is  --for TOKEN"));
  const TokenText text = api::tokens_of(model, library_text(options.given));
  QKV_CHECK(!text.ids.empty(), "the text has no tokens", Hint("give one of at least a word"));
  const int64_t row = options.token.value_or(std::ssize(text.ids) - 1);
  const Attributor attributor(model.model(), model.engine(), model.precision(), text, row);
  const auto given = [&](const char* flag, const std::optional<std::string>& word) {
    const api::TokenNaming naming{.tokenizer = tokenizer, .ids = options.given.ids};
    return word ? std::optional(api::one_token(naming, flag, *word)) : std::nullopt;
  };
  const auto [target, against] =
      api::compared_tokens(attributor, given("--for", options.in_favour), given("--against", options.against));
  QKV_CHECK(target != against, "--for and --against are both ", printable(shown(target)),
            Hint("a token against itself is 0"));
  const Attribution found = attributor.of(target, against);
  const ModelSpec& spec = model.spec();
  std::string how = attributor.linearised()
                        ? "linearised: the norms on the residual stream keep the scale they had in this run"
                        : "exact: the last norm keeps the scale it had in this run";
  if (spec.head.transform) how += "; so does the head's activation";
  if (spec.head.softcap > 0) how += fmt::format("; logits before the cap of {}", spec.head.softcap);
  const std::string at = shown(text.ids[static_cast<size_t>(row)]);
  if (!options.report.json) {
    const auto quoted = [&](int32_t id) { return printable(with_part_signs(shown(id))); };
    print_attribute(found,
                    fmt::format("after token {} {}: {} rather than {}", row, quoted(text.ids[static_cast<size_t>(row)]),
                                quoted(target), quoted(against)),
                    how);
  }
  const auto token = [&](int32_t id) {
    return Report{{"id", id}, {"text", shown(id)}, {"logit", attributor.logits()[static_cast<size_t>(id)]}};
  };
  Report parts = Report::array();
  for (const AttributedPart& part : found.parts) {
    parts.push_back({{"name", part.name}, {"kind", api::name_of(part.kind)}, {"share", part.share}});
  }
  write_report(options.report, Report{{"model", model.path()},
                                      {"token", {{"index", row}, {"text", at}}},
                                      {"target", token(target)},
                                      {"against", token(against)},
                                      {"linearised", attributor.linearised()},
                                      {"how", how},
                                      {"parts", parts},
                                      {"sum", found.sum},
                                      {"difference", found.difference}});
}

}  // namespace

void add_attribute(Command app) {
  const Command command = app.add_command("attribute", "Which heads and feed-forwards raise a token's logit");
  const auto options = std::make_shared<AttributeArguments>();
  add_model_options(command, options->model, ModelUse::looks);
  command.add_option("TEXT", options->given.text, "The text; for a model that translates, the source").required();
  command.add_option("--target TEXT", options->given.target, "What a model that translates has written so far");
  command.add_flag("--ids", options->given.ids,
                   "TEXT, --target, --for and --against are token ids; needs no tokenizer");
  command.add_option("--token", options->token, "After which token, counted from 0; otherwise the last");
  command.add_option("--for TOKEN", options->in_favour, "The token to explain");
  command.add_option("--against TOKEN", options->against, "The token it is compared with");
  add_report_options(command, options->report);
  command.footer(kAttributeExamples);
  command.callback([options] { attribute(*options); });
}

}  // namespace qkv::app

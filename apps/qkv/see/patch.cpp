// qkv patch: which layer, which position and which head carries what tells two texts apart.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/printable.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/one_token.h"
#include "common/reports.h"
#include "inspect/report/look_report.h"
#include "inspect/report/report_html.h"
#include "see/patch_view.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

constexpr const char* kPatchExamples =
    R"(The model reads the corrupt text, but at one site it gets the value it had there in the clean text: the residual stream
before a layer, what attention or the feed-forward writes, at one position; or one head, at all positions. What comes back
of the clean answer is r = (m(patched) - m(corrupt)) / (m(clean) - m(corrupt)), m = logit of --answer less logit of
--wrong: 0 as if nothing had been patched, 1 the clean answer. Below 0 it gets worse, above 1 surer than clean.

Both texts need as many tokens: change words for words of the same length (qkv tokenize shows tokens). Without --answer
it is the top guess after the clean text, without --wrong the one after the corrupt text. Both are one token each; in most
vocabularies the space before a word belongs to its token: --answer " Paris".

Examples:
  qkv patch MODEL --clean "The capital of France is" --corrupt "The capital of Poland is"
  qkv patch MODEL --clean "Tom saw Anna. He" --corrupt "Ann saw Anna. He" --answer " waved" --wrong " ran"
  qkv patch MODEL --clean "小明有一只猫" --corrupt "小红有一只猫" --heads L1H2,L2
  qkv patch MODEL --clean "a b a" --corrupt "c b a" --html patch.html
  qkv patch T5 --clean "a red house" --corrupt "a big house" --target "ein"    encoder, decoder and cross-attention)";

struct PatchArguments {
  ModelOptions model{.dtype = "f32"};
  std::string clean, corrupt, target, heads, html;
  std::optional<std::string> answer, wrong;
  std::optional<int64_t> token;
  ReportOptions report;
};

void check_patch_arguments(const PatchArguments& options) {
  for (const auto& [flag, text] : {std::pair("--clean", &options.clean), {"--corrupt", &options.corrupt}}) {
    QKV_CHECK(!text->empty(), flag, " is empty", Hint("give a text of a few words"));
    QKV_CHECK(is_utf8(*text), flag, " is not UTF-8", Hint("convert it, for example with  iconv"));
  }
  QKV_CHECK(!options.report.json || options.html != "-", "--json and --html - both go to standard output",
            Hint("give --html a file"));
}

// The token asked for, or the top guess of its own text.
int32_t asked_or_guessed(const Tokenizer& tokenizer, const char* flag, const std::optional<std::string>& text,
                         const std::vector<float>& logits) {
  return text ? one_token(tokenizer, flag, *text) : two_best(logits).front();
}

PatchFindings find_patches(const OpenModel& model, const PatchArguments& options) {
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  Patcher patcher(reader, model.encode(options.clean, options.target), model.encode(options.corrupt, options.target),
                  options.token.value_or(-1));
  const Tokenizer &source = model.tokenizer(), &own = model.spec().has_source() ? model.target_tokenizer() : source;
  const int32_t answer = asked_or_guessed(own, "--answer", options.answer, patcher.clean_logits()),
                wrong = asked_or_guessed(own, "--wrong", options.wrong, patcher.corrupt_logits());
  QKV_CHECK(answer != wrong, "both texts are answered by ", printable(token_text(own, answer)),
            Hint("choose texts with different answers, or name two tokens with --answer and --wrong"));
  std::vector<HeadId> heads;
  if (!options.heads.empty()) heads = parse_heads(model.spec(), options.heads);
  PatchPlan plan = patch_plan(model.spec(), patcher.clean(), heads);
  const PatchOutcome outcome = watched("patching", std::ssize(plan.patches), [&](const Reader::Finished& finished) {
    return patcher.outcome(plan.patches, answer, wrong, finished);
  });
  const auto shown = [](const Tokenizer& tokenizer, const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    return PatchedTokens{shown_tokens(tokenizer, a), shown_tokens(tokenizer, b)};
  };
  return {.tokens = shown(own, patcher.clean().ids, patcher.corrupt().ids),
          .source = shown(source, patcher.clean().source, patcher.corrupt().source),
          .row = patcher.row(),
          .answer = token_text(own, answer),
          .wrong = token_text(own, wrong),
          .answer_id = answer,
          .wrong_id = wrong,
          .clean = outcome.clean,
          .corrupt = outcome.corrupt,
          .maps = filled(std::move(plan), outcome)};
}

void patch(const PatchArguments& options) {
  check_patch_arguments(options);
  const OpenModel model = open_model(options.model);
  QKV_CHECK(
      model.spec().has_source() || options.target.empty(), "--target, but a ", model.spec().family,
      " has no source and target",
      Hint("--target is what a model that translates has written; the tokens compared are  --answer and --wrong"));
  const PatchFindings found = find_patches(model, options);
  if (!options.report.json && options.html != "-") {
    std::cout << draw_patches(found, std::max(terminal_columns(), 40));
  }
  if (!options.report.wanted() && options.html.empty()) return;
  const std::string name = name_of_model(options.model.path);
  const Json report{{"report", "patch"},
                    {"model", name},
                    {"made_with", fmt::format("qkv patch {} --clean {} --corrupt {}", name, printable(options.clean),
                                              printable(options.corrupt))},
                    {"patch", patch_json(found)}};
  write_report(options.report, report_text(report, 1));
  if (options.html.empty()) return;
  write_out(options.html, report_html(report));
  if (options.html != "-") std::cerr << "wrote " << options.html << '\n';
}

}  // namespace

void add_patch(Command app) {
  const Command command = app.add_command("patch", "What each layer, position and head carries: clean into corrupt");
  const auto options = std::make_shared<PatchArguments>();
  add_model_options(command, options->model);
  command.add_option("--clean TEXT", options->clean, "The text whose answer is to come back; or the source").required();
  command.add_option("--corrupt TEXT", options->corrupt, "The same with other words, of as many tokens").required();
  command.add_option("--target TEXT", options->target, "What a model that translates has written so far");
  command.add_option("--answer TOKEN", options->answer, "The token that the clean text is followed by");
  command.add_option("--wrong TOKEN", options->wrong, "The token that the corrupt text is followed by");
  command.add_option("--token", options->token, "After which token, counted from 0; otherwise the last")
      .between(int64_t{0}, int64_t{1} << 30);
  command.add_option("--heads HEADS", options->heads, "Heads to patch position by position too: L1H2,L3");
  add_report_options(command, options->report);
  command.add_output_file("--html FILE", options->html, "Write one page that opens offline");
  command.footer(kPatchExamples);
  command.callback([options] { patch(*options); });
}

}  // namespace qkv::app

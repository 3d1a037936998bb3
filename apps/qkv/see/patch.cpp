// qkv patch: which layer, which position and which head carries what tells two texts apart.
#include <iostream>
#include <memory>

#include "api/one_token.h"
#include "api/patching.h"
#include "base/error.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/token_ids.h"
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
vocabularies the space before a word belongs to its token: --answer " Paris". --answer "#403" is the token with this number.

Examples:
  qkv patch MODEL --clean "The capital of France is" --corrupt "The capital of Poland is"
  qkv patch MODEL --clean "Tom saw Anna. He" --corrupt "Ann saw Anna. He" --answer " waved" --wrong " ran"
  qkv patch MODEL --clean "小明有一只猫" --corrupt "小红有一只猫" --heads L1H2,L2
  qkv patch MODEL --clean "a b a" --corrupt "c b a" --html patch.html
  qkv patch T5 --clean "a red house" --corrupt "a big house" --target "ein"    encoder, decoder and cross-attention
  qkv patch MODEL --ids --clean "1 403 407" --corrupt "1 405 407" --answer 12  token ids, as they are; needs no tokenizer)";

struct PatchArguments {
  ModelOptions model;
  std::string clean, corrupt, target, heads, html;
  std::optional<std::string> answer, wrong;
  std::optional<int64_t> token;
  bool ids = false;
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

PatchFindings found_patches(const OpenModel& model, const PatchArguments& options) {
  const auto text = [&](const std::string& own) {
    return library_text({.text = own, .target = options.target, .ids = options.ids});
  };
  const api::TokenNaming naming{.tokenizer = api::answering_tokenizer(model), .ids = options.ids};
  const auto asked = [&](const char* flag, const std::optional<std::string>& token) -> std::optional<int32_t> {
    return token ? std::optional(api::one_token(naming, flag, *token)) : std::nullopt;
  };
  std::optional<Progress> progress;
  const InterruptWatch interrupt;
  return api::find_patches(model, text(options.clean), text(options.corrupt),
                           {.options = {.token = options.token.value_or(-1),
                                        .answer = asked("--answer", options.answer),
                                        .wrong = asked("--wrong", options.wrong),
                                        .heads = options.heads},
                            .progress = [&](int64_t done, int64_t of) {
                              if (interrupt.seen()) throw Interrupted{};
                              if (!progress) progress.emplace("patching", of);
                              progress->update(done);
                            }});
}

void patch(const PatchArguments& options) {
  check_patch_arguments(options);
  const api::Model library = open_library(options.model);
  const OpenModel& model = looking_inside(library);
  QKV_CHECK(
      model.spec().has_source() || options.target.empty(), "--target, but a ", model.spec().family,
      " has no source and target",
      Hint("--target is what a model that translates has written; the tokens compared are  --answer and --wrong"));
  const PatchFindings found = found_patches(model, options);
  if (!options.report.json && options.html != "-") {
    std::cout << draw_patches(found, std::max(terminal_columns(), 40));
  }
  if (!options.report.wanted() && options.html.empty()) return;
  const Json report = patch_report(found);
  write_report(options.report, report_text(report, 1));
  if (options.html.empty()) return;
  write_out(options.html, report_html(report));
  if (options.html != "-") std::cerr << "wrote " << options.html << '\n';
}

}  // namespace

void add_patch(Command app) {
  const Command command = app.add_command("patch", "What each layer, position and head carries: clean into corrupt");
  const auto options = std::make_shared<PatchArguments>();
  add_model_options(command, options->model, ModelUse::looks);
  command.add_option("--clean TEXT", options->clean, "The text whose answer is to come back; or the source").required();
  command.add_option("--corrupt TEXT", options->corrupt, "The same with other words, of as many tokens").required();
  command.add_option("--target TEXT", options->target, "What a model that translates has written so far");
  command.add_flag("--ids", options->ids,
                   "--clean, --corrupt, --target, --answer and --wrong are token ids; needs no tokenizer");
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

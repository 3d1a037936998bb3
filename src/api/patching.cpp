#include "api/patching.h"

#include "api/inside.h"
#include "api/measuring.h"
#include "api/one_token.h"
#include "api/texts.h"
#include "base/error.h"
#include "base/printable.h"
#include "inspect/report/look_report.h"
#include "inspect/report/report_html.h"
#include "inspect/report/report_text.h"
#include "open/made_with.h"

namespace qkv::v1 {
namespace {

// The token asked for, or the top guess.
int32_t asked_or_guessed(const char* what, std::optional<int32_t> asked, const Patcher::Logits& logits) {
  if (!asked) return two_best(logits).front();
  check_token(what, *asked, logits);
  return *asked;
}

PatchMap outer(const qkv::PatchMap& map) {
  return {.site = qkv::name_of(map.site),
          .stack = name_of_stack(map.stack),
          .across = qkv::name_of(map.across),
          .rows = map.rows,
          .columns = map.columns,
          .restored = map.restored};
}

std::vector<int32_t> ids_of(const std::vector<ShownToken>& tokens) {
  std::vector<int32_t> ids;
  for (const ShownToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// Empty where the two have targets of their own, or only one of them is token ids: the command has one option for both.
std::string made_with(const OpenModel& model, const Text& clean, const Text& corrupt, const PatchOptions& options) {
  const std::string target = target_title_of(clean);
  if (clean.is_ids != corrupt.is_ids || target != target_title_of(corrupt)) return "";
  const TokenNaming naming{.tokenizer = answering_tokenizer(model), .ids = clean.is_ids};
  CommandLine line = command_on(model, "qkv patch");
  line.option("--clean", title_of(clean)).option("--corrupt", title_of(corrupt));
  if (!target.empty()) line.option("--target", target);
  if (clean.is_ids) line.flag("--ids");
  if (options.answer) line.option("--answer", token_argument(naming, *options.answer));
  if (options.wrong) line.option("--wrong", token_argument(naming, *options.wrong));
  if (options.token >= 0) line.option("--token", std::to_string(options.token));
  if (!options.heads.empty()) line.option("--heads", options.heads);
  return line.text();
}

}  // namespace

const qkv::Tokenizer* answering_tokenizer(const OpenModel& model) {
  if (!model.has_tokenizer()) return nullptr;
  return model.spec().has_source() ? &model.target_tokenizer() : &model.tokenizer();
}

PatchFindings find_patches(const OpenModel& model, const Text& clean, const Text& corrupt, const PatchWork& work) {
  const PatchOptions& options = work.options;
  const ModelSpec& spec = model.spec();
  QKV_CHECK(options.token >= -1, "no token ", options.token, Hint("tokens are counted from 0; -1 is the last"));
  std::vector<HeadId> heads;
  if (!options.heads.empty()) heads = parse_heads(spec, options.heads);
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  Patcher patcher(reader, tokens_of(model, clean), tokens_of(model, corrupt), options.token);
  const qkv::Tokenizer* source = model.has_tokenizer() ? &model.tokenizer() : nullptr;
  const qkv::Tokenizer* own = answering_tokenizer(model);
  const int32_t answer = asked_or_guessed("answer", options.answer, patcher.clean_logits()),
                wrong = asked_or_guessed("wrong", options.wrong, patcher.corrupt_logits());
  const auto text = [&](int32_t id) { return own != nullptr ? token_text(*own, id) : "#" + std::to_string(id); };
  QKV_CHECK(answer != wrong, "both texts are answered by ", printable(text(answer)),
            Hint("choose texts with different answers, or name two tokens: answer and wrong"));
  PatchPlan plan = patch_plan(spec, patcher.clean(), heads);
  const PatchOutcome outcome = patcher.outcome(plan.patches, answer, wrong, [&](size_t done) {
    if (work.progress) work.progress(static_cast<int64_t>(done), std::ssize(plan.patches));
    return true;
  });
  const auto shown = [](const qkv::Tokenizer* tokenizer, const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    return PatchedTokens{shown_ids(tokenizer, a), shown_ids(tokenizer, b)};
  };
  return {.model = name_of_model(model.path()),
          .made_with = made_with(model, clean, corrupt, options),
          .tokens = shown(own, patcher.clean().ids, patcher.corrupt().ids),
          .source = shown(source, patcher.clean().source, patcher.corrupt().source),
          .row = patcher.row(),
          .answer = text(answer),
          .wrong = text(wrong),
          .answer_id = answer,
          .wrong_id = wrong,
          .clean = outcome.clean,
          .corrupt = outcome.corrupt,
          .maps = filled(std::move(plan), outcome)};
}

Patched Model::patch(const Text& clean, const Text& corrupt, const PatchOptions& options) const {
  const auto open = impl().looking();
  const Impl::Turn turn(impl());
  const PatchFindings found = find_patches(*open, clean, corrupt, {.options = options});
  Patched made{.clean_ids = ids_of(found.tokens.clean),
               .corrupt_ids = ids_of(found.tokens.corrupt),
               .token = found.row,
               .answer = found.answer_id,
               .wrong = found.wrong_id,
               .clean = found.clean,
               .corrupt = found.corrupt,
               .maps = {},
               .json = report_text(patch_report(found), 1)};
  for (const qkv::PatchMap& map : found.maps) made.maps.push_back(outer(map));
  return made;
}

std::string Patched::html() const {
  return report_html(parse_json(json, "the report"));
}

}  // namespace qkv::v1

// /page/models, look, write, cut and roles.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "infer/text_run.h"
#include "inspect/look/worth_telling.h"
#include "inspect/report/look_report.h"
#include "inspect/report/numbers.h"
#include "inspect/texts/edited_reading.h"
#include "open/made_with.h"
#include "server/page/page_first.h"
#include "server/page/page_routes.h"
#include "text/sentence_end.h"

namespace qkv::server {
namespace {

constexpr int64_t kLongestLiveMap = 64;  // tokens; longer maps are thumbnails, and tiles on request
constexpr int64_t kMostWritten = 256;

void check_report(const Json& part) {
  if (part.is_structured()) {
    for (const Json& each : part) check_report(each);
  } else if (part.is_number_float()) {
    QKV_CHECK(std::isfinite(part.get<double>()), "what was measured is not a finite number",
              Hint("the model's weights may not be finite"));
  }
}

// Rows of patterns to keep: all of a text if they fit, else some around the token. Maps of such texts are asked for part
// by part.
int64_t rows_kept(const ModelSpec& spec, const TokenText& text) {
  constexpr int64_t kMostRows = 512, kMostCells = 40'000'000, kFewRows = 64, kManyHeads = 256;
  const int64_t longest = std::max(std::ssize(text.ids), std::ssize(text.source));
  const int64_t heads = std::ssize(all_heads(spec));
  const bool fits = heads * longest * longest <= kMostCells;
  return fits && longest <= kMostRows ? kMostRows : heads > kManyHeads ? kFewRows / 4 : kFewRows;
}

// Everything but the story of one token.
LookedAt look_once(const PageText& asked, ReadingProbe* probe, int64_t token) {
  PageModel& model = asked.model;
  Looked seen = look_at(
      model.model(), model.engine(), asked.text,
      {.precision = model.precision(), .token = token, .whole = rows_kept(model.spec(), asked.text), .edit = probe});
  Ladder ladder = climb(model.model(), model.engine(), seen, {.precision = model.precision()});
  const Tokenizer* tokenizer = model.opened().has_tokenizer() ? &model.opened().tokenizer() : nullptr;
  LookedAt at(tokenizer, model.spec(), std::move(seen), std::move(ladder));
  at.next = next_tokens(model.model(), model.engine(), at.seen, model.precision());
  return at;
}

// Thumbnails of a text whose patterns are not kept: from the keys and queries that its tiles need too, or, where these
// are too large, from rows of a pass of their own.
void add_thumbs(const PageText& asked, CutProbe* probe, MapCache* cache, Json& heads) {
  constexpr int64_t kSide = 64, kSmallSide = 32, kManyHeads = 256, kRows = 2;
  PageModel& model = asked.model;
  const int64_t side = std::ssize(heads) > kManyHeads ? kSmallSide : kSide;
  const auto thumb = [](const MapPart& map) {
    return thumb_json(std::vector<double>(map.cells.begin(), map.cells.end()), {map.rows, map.columns, map.pooled});
  };
  size_t head = 0;
  if (cache != nullptr && cache->keeps_all(asked)) {
    for (const Place place : all_attentions(model.spec())) {
      const LayerMaps& maps = cache->get(asked, place);
      for (int64_t h = 0; h < attention_at(model.spec(), place).heads; ++h) {
        heads[head++]["thumb"] = thumb(maps.thumbnail(h, side, kRows));
      }
    }
    return;
  }
  for (const std::vector<MapPart>& attention :
       pooled_maps(model.model(), model.engine(), asked.text, side, {.precision = model.precision(), .edit = probe})) {
    for (const MapPart& map : attention) heads[head++]["thumb"] = thumb(map);
  }
}

Json cut_names(PageModel& model, const Cut& cut) {
  Json names = Json::array();
  for (const HeadId& head : cut.heads) names.push_back(name_of(model.spec(), head));
  for (const ExpertId& expert : cut.experts) names.push_back(name_of(expert));
  return names;
}

// The command that sees the same. A model has its name here, not the path where this machine keeps it.
std::string made_with(const PageText& asked, int64_t token) {
  PageModel& model = asked.model;
  const std::string known = model_argument(model.opened().path());
  CommandLine line = command_on(model.opened(), "qkv look", known == model.opened().path() ? model.name() : known);
  if (asked.title.empty()) {
    std::string ids;
    for (const int32_t id : asked.text.ids) ids += (ids.empty() ? "" : " ") + std::to_string(id);
    line.argument(ids).flag("--ids");
  } else {
    line.argument(asked.title);
  }
  if (!asked.text.target_text.empty()) line.option("--target", asked.text.target_text);
  if (token != std::ssize(asked.text.ids) - 1) line.option("--token", std::to_string(token));
  return line.text();
}

void check_writes(PageModel& model, const Fields& fields) {
  if (model.spec().kind == ModelSpec::Kind::encoder_only) fields.fail("model", "is an encoder: it writes no text");
}

OrderedJson can_of(const ModelSpec& spec) {
  OrderedJson can = {"look", "heads", "story"};
  if (spec.kind != ModelSpec::Kind::encoder_only) {
    for (const char* more : {"next", "write", "cut", "decode"}) can.push_back(more);
  }
  if (spec.has_source()) can.push_back("translate");
  if (!all_experts(spec).empty()) can.push_back("experts");
  return can;
}

}  // namespace

PageWritten page_write_text(const PageText& asked, const PageWriteOptions& options, Probe* probe) {
  PageModel& page = asked.model;
  const OpenModel& model = page.opened();
  const auto room = [](int64_t tokens) { return KvCache::whole_pages(tokens) + KvCache::kPage; };
  SessionOptions session{.sampling = options.sampling, .max_new = options.max_new};
  session.source = asked.text.source;
  session.prompt = asked.text.ids;
  Runner runner = model.runner({.cache = model.precision().compute,
                                .positions = room(std::ssize(session.prompt) + options.max_new),
                                .sources = room(std::ssize(session.source)),
                                .probe = probe});
  Scheduler scheduler(runner);
  PageWritten written;
  std::string error, hint;
  submit_text(scheduler, model.tokenizer(),
              {.options = session, .own_text = !session.source.empty(), .on_end = [&](const WrittenText& w) {
                 written.text = w.text;
                 error = w.error;
                 hint = w.hint;
                 if (w.ended == Ended::stopped) written.finish = "end";
                 std::vector<int32_t> ids;
                 for (const Choice& choice : w.tokens) ids.push_back(choice.id);
                 for (const ShownToken& token : shown_ids(&model.tokenizer(), ids)) {
                   written.tokens.push_back({{"id", token.id}, {"text", token.text}, {"continues", token.continues}});
                 }
               }});
  while (scheduler.step()) page.give_way();
  QKV_CHECK(error.empty(), "the model cannot continue this text: ", error, Hint(hint));
  return written;
}

HttpResponse report_response(const Json& report) {
  check_report(report);
  return {.body = json_text(report, -1) + "\n"};
}

Json page_look_report(const PageText& asked, std::optional<int64_t> token, MapCache* maps, bool thumbs) {
  PageModel& model = asked.model;
  const std::unique_ptr<CutProbe> probe = model.probe_of(asked.cut);
  // A pass over a long text takes long: what its maps are made of is kept by the way.
  const int64_t longest = std::max(std::ssize(asked.text.ids), std::ssize(asked.text.source));
  const bool keeps =
      maps != nullptr && rows_kept(model.spec(), asked.text) < longest && maps->keeps_all(asked) && !maps->has(asked);
  MapsReading kept = keeps ? MapsReading(model.spec(), asked.text) : MapsReading();
  std::optional<EditedReading> both;
  if (keeps && probe) both.emplace(*probe, kept);
  LookedAt at = look_once(asked,
                          !keeps ? probe.get()
                          : both ? static_cast<ReadingProbe*>(&*both)
                                 : &kept,
                          token.value_or(-1));
  if (keeps) maps->put(asked, kept);
  if (!token && at.seen.whole) {
    const int64_t worth = token_worth_telling(at.seen, at.ladder, at.tokens).token;
    if (worth != at.seen.token) {
      at.seen = look_at(model.model(), model.engine(), asked.text,
                        {.precision = model.precision(), .token = worth, .edit = probe.get()});
    }
  }
  LookHeading heading{.model = model.name(), .title = asked.title};
  if (!probe) heading.made_with = made_with(asked, at.seen.token);
  Json report = look_report(at, heading, {.longest_map = kLongestLiveMap, .top = at.seen.whole});
  if (!at.seen.whole && thumbs) add_thumbs(asked, probe.get(), maps, report["heads"]);
  model.add_roles(report["heads"]);
  if (probe) report["cut"] = cut_names(model, asked.cut);
  return report;
}

OrderedJson page_models_json(PageParts& page) {
  OrderedJson list = OrderedJson::array();
  for (const auto& model : page.models.all()) {
    OrderedJson one{{"name", model->name()}, {"default", list.empty()}};
    try {
      const ModelSpec& spec = model->spec();
      one["kind"] = name_of(spec.kind);
      one["family"] = spec.family;
      one["facts"] = OrderedJson(facts_json(spec));
      if (model->is_open()) one["facts"]["dtype"] = name_of(model->precision().compute);
      one["can"] = can_of(spec);
      one["examples"] = page_examples(*model, false);
      one["examples_zh"] = page_examples(*model, true);
      constexpr const char* kStates[] = {"none", "measuring", "ready", "failed"};
      one["roles"] = kStates[static_cast<size_t>(model->roles_state())];
    } catch (const Error& error) {
      one["error"] = error.message();
    }
    list.push_back(std::move(one));
  }
  return list;
}

HttpResponse page_models(PageParts& page, const Fields&) {
  return json_response({{"models", page_models_json(page)}});
}

HttpResponse page_look(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  const std::optional<int64_t> token = fields.whole("token", {0, std::ssize(asked.text.ids) - 1});
  asked.model.measure_roles();
  const bool story_only = fields.word("only", {"story"}).has_value();
  Json report = page_look_report(asked, token, story_only ? nullptr : &page.maps, !story_only);
  if (story_only) report = {{"story", std::move(report["story"])}};
  return report_response(report);
}

HttpResponse page_write(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  check_writes(asked.model, fields);
  PageWriteOptions options;
  options.max_new = fields.whole("max_tokens", {1, kMostWritten}).value_or(40);
  options.sampling.temperature = fields.number("temperature", {0, 10}).value_or(0);
  options.sampling.top_k = fields.whole("top_k", {0, asked.model.spec().vocabulary}).value_or(0);
  options.sampling.top_p = fields.number("top_p", {0, 1}).value_or(1);
  options.sampling.seed = static_cast<uint64_t>(fields.whole("seed", {0, INT64_MAX}).value_or(0));
  const std::unique_ptr<CutProbe> probe = asked.model.probe_of(asked.cut);
  const PageWritten written = page_write_text(asked, options, probe.get());
  return report_response({{"text", written.text},
                          {"sentence", up_to_sentence_end(written.text)},
                          {"tokens", written.tokens},
                          {"finish", written.finish}});
}

HttpResponse page_cut(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  PageModel& model = asked.model;
  if (asked.cut.heads.empty() && asked.cut.experts.empty()) fields.fail("cut", "names no head");
  const std::unique_ptr<CutProbe> probe = model.probe_of(asked.cut);
  Json report{{"cut", cut_names(model, asked.cut)}};
  if (model.spec().kind != ModelSpec::Kind::encoder_only) {
    PageWriteOptions options;
    options.max_new = fields.whole("max_tokens", {1, kMostWritten}).value_or(24);
    const std::string before = up_to_sentence_end(page_write_text(asked, options, nullptr).text),
                      after = up_to_sentence_end(page_write_text(asked, options, probe.get()).text);
    report["before"] = before;
    report["after"] = after;
    report["changed"] = before != after;
    const auto next_of = [&](CutProbe* with) {
      const LookedAt at = look_once(asked, with, -1);
      return next_json(at, *at.next);
    };
    report["next"] = {{"before", next_of(nullptr)}, {"after", next_of(probe.get())}};
  }
  if (fields.flag("loss").value_or(true) && model.spec().kind != ModelSpec::Kind::encoder_only) {
    Reader reader(model.model(), model.engine(), {.precision = model.precision()});
    const CutEffect effect = effect_of(reader, model.texts(), *probe);
    report["delta"] = effect.delta.mean;
    report["low"] = effect.delta.low;
    report["high"] = effect.delta.high;
    report["n"] = effect.delta.n;
    report["texts"] = effect.delta.texts;
    report["loss"] = {{"before", effect.before.mean}, {"after", effect.after.mean}};
    report["kl"] = effect.kl.mean;
    report["same_guess"] = effect.same_guess.mean;
  }
  return report_response(report);
}

HttpResponse page_roles(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  model.measure_roles();
  return json_response(model.roles_json());
}

}  // namespace qkv::server

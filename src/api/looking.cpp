#include "api/looking.h"

#include "api/inside.h"
#include "api/reading.h"
#include "api/texts.h"
#include "base/error.h"
#include "core/host_values.h"
#include "inspect/report/report_html.h"
#include "inspect/report/report_text.h"
#include "open/made_with.h"

namespace qkv::v1 {
namespace {

std::vector<float> logits_of(const OpenModel& model, const qkv::Looked& seen) {
  Arena arena(model.engine().device());
  Context cx = model.engine().context(arena, model.precision());
  const Tensor stream = cx.upload(seen.streams.back(), {seen.rows.count, seen.width});
  return host_floats(model.model().read_out(cx, stream));
}

// A look without some heads is one of the library: the command has no such option.
LookHeading heading_of(const OpenModel& model, const Text& given, const LookWork& work) {
  LookHeading heading{.model = name_of_model(model.path()), .title = title_of(given)};
  if (work.edit == nullptr) {
    CommandLine line = command_on(model, "qkv look");
    add_text(line, given);
    if (work.token >= 0) line.option("--token", std::to_string(work.token));
    heading.made_with = line.text();
  }
  if (work.cut == nullptr) return heading;
  for (const HeadId& head : work.cut->heads) heading.cut.push_back(qkv::name_of(model.spec(), head));
  for (const ExpertId& expert : work.cut->experts) heading.cut.push_back(qkv::name_of(expert));
  return heading;
}

Rung outer(const LookedAt& at, const qkv::Rung& rung, int64_t row) {
  Rung out{.guesses = {}, .entropy = rung.entropy, .kl = rung.kl, .rank = rung.rank};
  for (const qkv::Guess& guess : rung.guesses) {
    out.guesses.push_back({.id = guess.id, .p = guess.p, .text = at.guess_text(row, guess.id)});
  }
  return out;
}

}  // namespace

Looked::Impl::Impl(const OpenModel& open, qkv::Looked seen, Ladder ladder, bool with_tokenizer)
    : spec(open.spec()),
      tokenizer(with_tokenizer ? std::optional(open.tokenizer()) : std::nullopt),
      at(tokenizer ? &*tokenizer : nullptr, spec, std::move(seen), std::move(ladder)) {}

std::shared_ptr<Looked::Impl> look_inside(const OpenModel& model, const Text& given, const LookWork& work) {
  const TokenText text = tokens_of(model, given);
  qkv::Looked seen = look_at(model.model(), model.engine(), text,
                             {.precision = model.precision(), .token = work.token, .edit = work.edit});
  LadderOptions climbing{.precision = model.precision(), .progress = {}};
  if (work.climbing) {
    climbing.progress = [&, of = seen.rows.count * std::ssize(seen.streams)](int64_t done) { work.climbing(done, of); };
  }
  Ladder ladder = climb(model.model(), model.engine(), seen, climbing);
  const bool with_tokenizer = !given.is_ids || model.has_tokenizer();
  auto made = std::make_shared<Looked::Impl>(model, std::move(seen), std::move(ladder), with_tokenizer);
  LookedAt& at = made->at;
  at.next = next_tokens(model.model(), model.engine(), at.seen, model.precision());
  if (work.logits) made->logits = logits_of(model, at.seen);
  made->heading = heading_of(model, given, work);
  for (const std::vector<qkv::Rung>& level : at.ladder.levels) {
    std::vector<Rung>& rungs = made->rungs.emplace_back();
    for (const qkv::Rung& rung : level) rungs.push_back(outer(at, rung, at.ladder.rows.first + std::ssize(rungs)));
  }
  return made;
}

Looked Model::look(const Text& text, const LookOptions& options) const {
  const auto open = impl().looking();
  check_text(*open, text);
  const Impl::Turn turn(impl());
  MeasuredCut measured;
  std::optional<CutProbe> cut;
  if (options.cut) {
    Reader reader(open->model(), open->engine(), {.precision = open->precision()});
    measured = measured_cut(reader, *open, *options.cut);
    cut.emplace(open->spec(), measured.cut, std::move(measured.outputs));
  }
  return Looked(
      look_inside(*open, text, {.token = options.token, .cut = &measured.cut, .edit = cut ? &*cut : nullptr}));
}

const Looked::Impl& Looked::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "what was seen was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

std::vector<std::string> Looked::tokens() const {
  std::vector<std::string> out;
  for (const ShownToken& token : impl().at.tokens) out.push_back(token.text);
  return out;
}

std::vector<int32_t> Looked::ids() const {
  return impl().at.seen.text.ids;
}

std::vector<std::string> Looked::names() const {
  std::vector<std::string> out;
  for (const LookArray& array : look_arrays(impl().at, impl().logits)) out.push_back(array.name);
  return out;
}

Looked::View Looked::view(std::string_view name) const {
  std::string all;
  for (const LookArray& array : look_arrays(impl().at, impl().logits)) {
    if (array.name == name) return {.shape = array.shape, .values = array.numbers};
    all += (all.empty() ? "" : ", ") + array.name;
  }
  QKV_FAIL("there is no array ", name, Hint("there are: ", all));
}

Array Looked::array(std::string_view name) const {
  const View seen = view(name);
  return {.name = std::string(name), .shape = seen.shape, .values = {seen.values.begin(), seen.values.end()}};
}

int64_t Looked::levels() const {
  return std::ssize(impl().rungs);
}

const std::vector<Rung>& Looked::ladder(int64_t level) const {
  QKV_CHECK(level >= 0 && level < levels(), "level ", level, " of ", levels(),
            Hint("level 0 is the embedding, the last one the output"));
  return impl().rungs[static_cast<size_t>(level)];
}

std::string Looked::json() const {
  return report_text(look_report(impl().at, impl().heading), -1);
}

std::string Looked::html() const {
  return report_html(look_report(impl().at, impl().heading));
}

void Looked::save_npz(const std::string& path) const {
  write_npz(path, impl().at, impl().logits);
}

}  // namespace qkv::v1

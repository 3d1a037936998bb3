#include "inspect/texts/reading.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "core/host_values.h"
#include "inspect/texts/finite.h"
#include "model/kv_layouts.h"
#include "model/weight_memory.h"
#include "ops/ops.h"

namespace qkv {
namespace {

int64_t rows_of(const TokenText& text) {
  return std::ssize(text.ids);
}

// One segment per text; its request is the index of the text.
Rows numbered(Context& cx, std::span<const int32_t> lengths, size_t first) {
  std::vector<Segment> list;
  int32_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    list.push_back({.request = static_cast<int32_t>(first + i),
                    .first_row = at,
                    .rows = lengths[i],
                    .first_key = at,
                    .keys = lengths[i]});
    at += lengths[i];
  }
  return Rows::make(cx, std::move(list), at, at);
}

void append_positions(std::vector<PassTexts::At>& to, size_t text, size_t count) {
  for (size_t i = 0; i < count; ++i) to.push_back({static_cast<int32_t>(text), static_cast<int32_t>(i)});
}

void check_ids(const char* what, size_t text, std::span<const int32_t> ids, int64_t vocabulary, int32_t allowed = 0) {
  if (vocabulary == 0) return;
  if (const auto bad = first_outside(ids, vocabulary, allowed)) {
    QKV_FAIL(what, " ", *bad, " of text ", text, " is ", ids[*bad], " but must be in [0, ", vocabulary, ")",
             Hint("check the tokenizer against the model"));
  }
}

// Asks for what another one asks for, and looks at nothing.
class AskingProbe : public Probe {
 public:
  explicit AskingProbe(const Probe& as) : as_(as) {}
  Ask ask(Place place, Site site) const override { return as_.ask(place, site); }
  void visit(Context&, const Tap&, Tensor&) override {}
  StatsWanted stats_wanted(Place place) const override { return as_.stats_wanted(place); }
  std::vector<int32_t> rows_wanted(Place place) const override { return as_.rows_wanted(place); }

 private:
  const Probe& as_;
};

}  // namespace

// The tokens of a pass without a cache, all texts one after the other.
struct Reader::Input {
  size_t first = 0;  // text
  std::vector<int32_t> ids, lengths, source_ids, source_lengths;
  Rows rows, source_rows;  // of the last states()

  Size size() const {
    const auto longest = [](const std::vector<int32_t>& all) {
      return all.empty() ? 0 : *std::max_element(all.begin(), all.end());
    };
    return {.rows = std::max(std::ssize(ids), std::ssize(source_ids)),
            .longest = std::max(longest(lengths), longest(source_lengths))};
  }
  Tensor states(Context& cx, const Model& model) {
    rows = numbered(cx, lengths, first);
    Model::Input input{.ids = cx.upload(ids), .rows = &rows};
    if (!source_ids.empty()) {
      source_rows = numbered(cx, source_lengths, first);
      input.source_ids = cx.upload(source_ids);
      input.source_rows = &source_rows;
    }
    return model.states(cx, input);
  }
};

// State shared by the passes of one call.
struct Reader::Pass {
  PassTexts at;
  ReadingProbe* probe = nullptr;
  std::vector<std::vector<float>>* losses = nullptr;  // null: not wanted

  std::span<const TokenText> texts() const { return at.texts; }

  // Of texts [first, end); also says where their rows and keys are.
  Input input(size_t first, size_t end) {
    Input made{.first = first};
    at.rows.clear();
    at.source_rows.clear();
    for (size_t i = first; i < end; ++i) {
      const TokenText& text = texts()[i];
      made.ids.insert(made.ids.end(), text.ids.begin(), text.ids.end());
      made.lengths.push_back(static_cast<int32_t>(text.ids.size()));
      append_positions(at.rows, i, text.ids.size());
      if (text.source.empty()) continue;
      made.source_ids.insert(made.source_ids.end(), text.source.begin(), text.source.end());
      made.source_lengths.push_back(static_cast<int32_t>(text.source.size()));
      append_positions(at.source_rows, i, text.source.size());
    }
    at.keys = at.rows;
    return made;
  }

  std::vector<int32_t> targets() const {
    std::vector<int32_t> all(at.rows.size());
    for (size_t r = 0; r < all.size(); ++r) {
      all[r] = at.texts[static_cast<size_t>(at.rows[r].text)].target(static_cast<size_t>(at.rows[r].position));
    }
    return all;
  }
  ops::Loss loss(Context& cx, const Model& model, const Tensor& states, std::span<const int32_t> wanted,
                 double divisor) const {
    const Head& head = model.head();
    return ops::cross_entropy(
        cx, head.before_logits(cx, states), head.weight(), cx.upload(wanted),
        {.bias = head.bias(), .rule = {.softcap = head.softcap(), .ignore = TokenText::kIgnored}, .divisor = divisor});
  }
  // What is wanted of the head: its logits, if the probe reads them, and the losses. The device may still be at work.
  struct OfHead {
    Tensor row, losses;  // logits of a row to be checked; the losses of all
    std::vector<int32_t> targets;
  };
  OfHead run_head(Context& cx, const Model& model, const Tensor& states) const {
    OfHead made{.row = logits_of_a_row(model, cx, states)};
    if (cx.watched({model.spec().main(), 0}, Site::logits)) {
      if (!cx.arena.planning()) check_head(model, made.row);
      model.head().forward(cx, states);
    }
    if (losses == nullptr) return made;
    made.targets = targets();
    made.losses = loss(cx, model, states, made.targets, 1).losses;
    return made;
  }
  void finish(const Model& model, const OfHead& made) {
    check_head(model, made.row);
    if (losses == nullptr) return;
    const std::vector<float> of_rows = host_floats(made.losses);
    check_finite(model, "a loss", of_rows);
    const float* of_row = of_rows.data();
    for (size_t r = 0; r < of_rows.size();) {  // stretches of one text
      const int32_t text = at.rows[r].text;
      const size_t first = r;
      while (r < of_rows.size() && at.rows[r].text == text && made.targets[r] != TokenText::kIgnored) ++r;
      std::vector<float>& mine = (*losses)[static_cast<size_t>(text)];
      mine.insert(mine.end(), of_row + first, of_row + r);
      if (r == first) ++r;
    }
  }
};

Reader::Reader(const Model& model, const Engine& engine, const ReadOptions& options)
    : model_(model), engine_(engine), options_(options), arena_(engine.device()), gradients_(engine.device()) {
  QKV_CHECK(options.rows > 0, "passes of ", options.rows, " rows", Hint("1 or more"));
}

int64_t Reader::peak_bytes() const {
  return arena_.peak() + gradients_.peak() + cache_bytes_;
}

void Reader::check(std::span<const TokenText> texts, bool scored) const {
  const ModelSpec& spec = model_.spec();
  const bool has_source = spec.has_source();
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenText& text = texts[i];
    QKV_CHECK(!text.ids.empty(), "text ", i, " of ", texts.size(), " has no tokens", Hint("leave it out"));
    const std::string source = text.source.empty() ? "" : " and a source of " + std::to_string(text.source.size());
    QKV_CHECK(spec.context == 0 || std::max(rows_of(text), std::ssize(text.source)) <= spec.context,
              texts.size() == 1 ? "the text" : "text " + std::to_string(i), " has ", text.ids.size(), " tokens", source,
              " but this ", spec.family, " was made for ", spec.context, source.empty() ? "" : " of each",
              Hint("cut it into shorter ones"));
    QKV_CHECK(has_source == !text.source.empty(), "text ", i, " has a source of ", text.source.size(), " tokens but a ",
              spec.family, has_source ? " reads one of at least 1" : " has no encoder beside its decoder",
              Hint(has_source ? "give pairs, source<TAB>target" : "give texts alone"));
    QKV_CHECK(text.targets.empty() || text.targets.size() == text.ids.size(), "text ", i, " has ", text.ids.size(),
              " tokens and ", text.targets.size(), " targets", Hint("one for each token"));
    check_ids("token", i, text.ids, spec.vocabulary);
    check_ids("target", i, text.targets, spec.vocabulary, TokenText::kIgnored);
    check_ids("token of the source", i, text.source,
              spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
    QKV_CHECK(!scored || spec.kind != ModelSpec::Kind::encoder_only || !text.targets.empty(), "a ", spec.family,
              " sees the tokens after a row too: text ", i, " has no loss without targets",
              Hint("hide some tokens and say what stands there"));
  }
}

// Room for a pass, or an Error that says need and have: it is run without kernels and without memory first, unless a larger one
// of the same call has been.
void Reader::plan(const Probe& asks, const Size& size, const DryRun& run) {
  if (size.rows <= fits_.rows && size.longest <= fits_.longest) return;
  Arena arena(engine_.device(), 0, Arena::Mode::plan), gradients(engine_.device(), 0, Arena::Mode::plan);
  const Kernels none = engine_.kernels().dry();
  Context dry{.kernels = none, .exec = engine_.exec(), .arena = arena, .precision = options_.precision};
  AskingProbe asking(asks);
  dry.probe = &asking;
  dry.indices_checked = true;
  run(dry, gradients);
  const WeightMemory weights = weight_memory(model_, engine_.kernels(), options_.precision);
  const int64_t pass = arena.peak() + gradients.peak() + (weights.held < weights.kept ? weights.before : 0),
                need = weights.kept + size.cache + pass,
                there = weights.held + arena.peak() - arena_.missing(arena.peak()) + gradients.peak() -
                        gradients_.missing(gradients.peak()),
                have = engine_.device().free_bytes() + there;
  QKV_CHECK(need <= have, "a pass of ", size.rows, " tokens needs ", in_gibibytes(need), " (weights ",
            in_gibibytes(weights.kept), size.cache > 0 ? ", keys and values " + in_gibibytes(size.cache) : "",
            ", what it computes ", in_gibibytes(pass), ") but ", in_gibibytes(have), " are free on ",
            engine_.device().name(),
            Hint("give shorter texts or a smaller or quantised model",
                 &engine_.device() == &cpu_device() ? "" : ", or --device cpu"));
  arena_.reserve(arena.peak());
  gradients_.reserve(gradients.peak());
  fits_ = size;
}

// Texts [first, end) in one pass, without a cache. A pass with a number that is not finite is run again, to say where.
void Reader::whole(Pass& pass, size_t first, size_t end, bool again) {
  arena_.rewind({});
  Context cx = engine_.context(arena_, options_.precision);
  cx.indices_checked = true;
  FiniteProbe checked(model_, pass.probe);
  cx.probe = &checked;
  Input input = pass.input(first, end);
  if (pass.probe != nullptr) pass.probe->begin(cx, pass.at);
  plan(checked, input.size(), [&](Context& dry, Arena&) {
    if (!again) checked.only_find(dry);
    pass.run_head(dry, model_, input.states(dry, model_));
  });
  if (!again) checked.only_find(cx);
  const Pass::OfHead head = pass.run_head(cx, model_, input.states(cx, model_));
  if (checked.found()) {
    whole(pass, first, end, true);
    QKV_FAIL("the states of a pass over texts ", first, " to ", end - 1, " are not finite, once in two passes",
             Hint("passes are repeatable: look at the memory of the device"));
  }
  pass.finish(model_, head);
  if (pass.probe != nullptr) pass.probe->end();
}

// One text that is longer than a pass.
void Reader::in_chunks(Pass& pass, size_t text) {
  const std::vector<int32_t>& ids = pass.texts()[text].ids;
  KvCache cache(engine_.device(), kv_layouts(model_.spec()),
                {.dtype = options_.precision.compute, .positions = std::ssize(ids)});
  cache_bytes_ = std::max(cache_bytes_,
                          KvCache::bytes_for(kv_layouts(model_.spec()), options_.precision.compute, std::ssize(ids)));
  // Of what is yet to be written; a GPU's are taken at once.
  const auto cache_bytes = [&](size_t left) {
    if (engine_.device().stream() != nullptr) return int64_t{0};
    return KvCache::bytes_for(kv_layouts(model_.spec()), options_.precision.compute, static_cast<int64_t>(left));
  };
  const KvCache::Id sequence = cache.start();
  pass.at.keys.assign(static_cast<size_t>(cache.pages() * KvCache::kPage), {});
  pass.at.source_rows.clear();
  for (size_t first = 0; first < ids.size();) {
    arena_.rewind({});
    Context cx = engine_.context(arena_, options_.precision);
    FiniteProbe checked(model_, pass.probe);
    cx.probe = &checked;
    const size_t count = std::min(ids.size() - first, static_cast<size_t>(options_.rows));
    const KvCache::Part part{.id = sequence,
                             .count = static_cast<int32_t>(count),
                             .request = static_cast<int32_t>(text),
                             .reach = static_cast<int32_t>(ids.size())};
    const KvPages pages = cache.append(cx, {&part, 1});
    pass.at.rows.clear();
    std::vector<int32_t> slots(count);
    pages.slots.front().device().download(slots.data(), pages.slots.front().data(),
                                          static_cast<int64_t>(count * sizeof(int32_t)));
    for (size_t r = 0; r < count; ++r) {
      pass.at.rows.push_back({static_cast<int32_t>(text), static_cast<int32_t>(first + r)});
      pass.at.keys[static_cast<size_t>(slots[r])] = pass.at.rows.back();
    }
    if (pass.probe != nullptr) pass.probe->begin(cx, pass.at);
    const auto run_head = [&](Context& in) {
      const Tensor now = in.upload(std::span(ids).subspan(first, count));
      return pass.run_head(in, model_, model_.next_states(in, now, pages, nullptr));
    };
    const auto reach = static_cast<int64_t>(first + count);
    plan(checked, {.rows = static_cast<int64_t>(count), .longest = reach, .cache = cache_bytes(ids.size() - first)},
         [&](Context& dry, Arena&) { run_head(dry); });
    pass.finish(model_, run_head(cx));
    if (pass.probe != nullptr) pass.probe->end();
    first += count;
  }
}

void Reader::read(std::span<const TokenText> texts, ReadingProbe* probe, std::vector<std::vector<float>>* losses,
                  const Finished& finished) {
  check(texts, losses != nullptr);
  fits_ = {};
  const bool can_chunk = model_.spec().kind == ModelSpec::Kind::decoder_only;
  Pass pass{.at = {.texts = texts}, .probe = probe, .losses = losses};
  for (size_t first = 0; first < texts.size();) {
    int64_t rows = 0, source_rows = 0;
    size_t end = first;
    for (; end < texts.size(); ++end) {
      rows += rows_of(texts[end]);
      source_rows += std::ssize(texts[end].source);
      if (end > first && std::max(rows, source_rows) > options_.rows) break;
    }
    if (can_chunk && rows_of(texts[first]) > options_.rows) {
      end = first + 1;
      in_chunks(pass, first);
    } else {
      whole(pass, first, end);
    }
    first = end;
    if (finished && !finished(end)) return;
  }
}

std::vector<std::vector<float>> Reader::losses(std::span<const TokenText> texts, ReadingProbe* probe,
                                               const Finished& finished) {
  std::vector<std::vector<float>> found(texts.size());
  read(texts, probe, &found, finished);
  return found;
}

void Reader::look(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished) {
  read(texts, &probe, nullptr, finished);
}

std::vector<double> Reader::backward(std::span<const TokenText> texts, ReadingProbe& probe, const Finished& finished) {
  check(texts, true);
  fits_ = {};
  std::vector<double> found;
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenText& text = texts[i];
    Pass pass{.at = {.texts = texts}, .probe = &probe};
    Input input = pass.input(i, i + 1);
    const std::vector<int32_t> targets = pass.targets();
    const auto counted =
        static_cast<int64_t>(targets.size()) - std::count(targets.begin(), targets.end(), TokenText::kIgnored);
    QKV_CHECK(counted > 0, "text ", i, " of ", text.ids.size(), " tokens has nothing to predict",
              Hint("two tokens at least"));
    arena_.rewind({});
    gradients_.rewind({});
    Tape tape(gradients_);
    Context cx = engine_.context(arena_, options_.precision);
    cx.tape = &tape;
    FiniteProbe checked(model_, &probe);
    cx.probe = &checked;
    probe.begin(cx, pass.at);
    const auto loss_of = [&](Context& in) {
      const Tensor states = input.states(in, model_), row = logits_of_a_row(model_, in, states);
      if (!in.arena.planning()) check_head(model_, row);
      return pass.loss(in, model_, states, targets, static_cast<double>(counted));
    };
    plan(checked, input.size(), [&](Context& dry, Arena& gradients) {
      Tape dry_tape(gradients);
      dry.tape = &dry_tape;
      dry_tape.backward(dry, loss_of(dry).loss);
    });
    const ops::Loss loss = loss_of(cx);
    const std::vector<float> value = host_floats(loss.loss);
    check_finite(model_, "the loss of text " + std::to_string(i), value);
    tape.backward(cx, loss.loss);
    probe.end();
    found.push_back(static_cast<double>(value.front()));
    if (finished && !finished(i + 1)) break;
  }
  return found;
}

}  // namespace qkv

#include "inspect/texts/reading.h"

#include <algorithm>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/texts/finite.h"
#include "model/kv_layouts.h"
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

}  // namespace

// State shared by the passes of one call.
struct Reader::Pass {
  PassTexts at;
  ReadingProbe* probe = nullptr;
  std::vector<std::vector<float>>* losses = nullptr;  // null: not wanted

  std::span<const TokenText> texts() const { return at.texts; }

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
      check_head(model, made.row);
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

// Texts [first, end) in one pass, without a cache. A pass with a number that is not finite is run again, to say where.
void Reader::whole(Pass& pass, size_t first, size_t end, bool again) {
  arena_.rewind({});
  Context cx = engine_.context(arena_, options_.precision);
  cx.indices_checked = true;
  FiniteProbe checked(model_, pass.probe);
  cx.probe = &checked;
  std::vector<int32_t> ids, lengths, source_ids, source_lengths;
  pass.at.rows.clear();
  pass.at.source_rows.clear();
  for (size_t i = first; i < end; ++i) {
    const TokenText& text = pass.texts()[i];
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    lengths.push_back(static_cast<int32_t>(text.ids.size()));
    append_positions(pass.at.rows, i, text.ids.size());
    if (text.source.empty()) continue;
    source_ids.insert(source_ids.end(), text.source.begin(), text.source.end());
    source_lengths.push_back(static_cast<int32_t>(text.source.size()));
    append_positions(pass.at.source_rows, i, text.source.size());
  }
  pass.at.keys = pass.at.rows;
  if (pass.probe != nullptr) pass.probe->begin(cx, pass.at);
  if (!again) checked.only_find(cx);
  const Rows rows = numbered(cx, lengths, first);
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  Rows source_rows;
  if (!source_ids.empty()) {
    source_rows = numbered(cx, source_lengths, first);
    input.source_ids = cx.upload(source_ids);
    input.source_rows = &source_rows;
  }
  const Pass::OfHead head = pass.run_head(cx, model_, model_.states(cx, input));
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
    const Tensor in = cx.upload(std::span(ids).subspan(first, count));
    pass.finish(model_, pass.run_head(cx, model_, model_.next_states(cx, in, pages, nullptr)));
    if (pass.probe != nullptr) pass.probe->end();
    first += count;
  }
}

void Reader::read(std::span<const TokenText> texts, ReadingProbe* probe, std::vector<std::vector<float>>* losses,
                  const Finished& finished) {
  check(texts, losses != nullptr);
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
  std::vector<double> found;
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenText& text = texts[i];
    Pass pass{.at = {.texts = texts}, .probe = &probe};
    append_positions(pass.at.rows, i, text.ids.size());
    append_positions(pass.at.source_rows, i, text.source.size());
    pass.at.keys = pass.at.rows;
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
    const auto length = static_cast<int32_t>(text.ids.size()), source = static_cast<int32_t>(text.source.size());
    const Rows rows = numbered(cx, {&length, 1}, i);
    Model::Input input{.ids = cx.upload(text.ids), .rows = &rows};
    Rows source_rows;
    if (source > 0) {
      source_rows = numbered(cx, {&source, 1}, i);
      input.source_ids = cx.upload(text.source);
      input.source_rows = &source_rows;
    }
    const Tensor states = model_.states(cx, input);
    check_head(model_, logits_of_a_row(model_, cx, states));
    const ops::Loss loss = pass.loss(cx, model_, states, targets, static_cast<double>(counted));
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

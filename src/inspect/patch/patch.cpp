#include "inspect/patch/patch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "core/host_values.h"

namespace qkv {
namespace {

bool has_rows(Site site) {
  switch (site) {
    case Site::embed:
    case Site::resid_pre:
    case Site::resid_mid:
    case Site::resid_post:
    case Site::attn_q:
    case Site::attn_z:
    case Site::attn_out:
    case Site::mlp_out:
      return true;
    default:
      return false;
  }
}

std::string lengths_of(const TokenText& text) {
  const std::string own = std::to_string(text.ids.size());
  return text.source.empty() ? own + " tokens"
                             : std::to_string(text.source.size()) + " tokens of source and " + own + " of target";
}

}  // namespace

// Copies what the clean text has at the sites wanted.
class Patcher::Values : public ReadingProbe {
 public:
  Values(std::set<Key> wanted, std::map<Key, std::vector<float>>& into) : wanted_(std::move(wanted)), into_(into) {}

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    return wanted_.contains({place.stack, place.layer, site}) ? Ask::read : Ask::none;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    std::vector<float>& to = into_[{tap.place.stack, tap.place.layer, tap.site}];
    const std::vector<float> more = host_floats(x);  // of a long text, the next rows
    to.insert(to.end(), more.begin(), more.end());
  }

 private:
  std::set<Key> wanted_;
  std::map<Key, std::vector<float>>& into_;
};

// Text i of a reading gets patch i; the logits of one row of each are handed on.
class Patcher::Probe : public ReadingProbe {
 public:
  using Take = std::function<void(size_t patch, std::span<const float> logits)>;
  Probe(const Patcher& from, std::span<const Patch> patches, Take take)
      : from_(from), patches_(patches), take_(std::move(take)) {
    for (const Patch& patch : patches) {
      for (const PatchSite& at : patch) edited_.insert({at.place.stack, at.place.layer, at.site});
    }
  }

  void begin(Context&, const PassTexts& pass) override { rows_ = pass.rows; }
  Ask ask(Place place, Site site) const override {
    const Ask edits = edited_.contains({place.stack, place.layer, site}) ? Ask::edit : Ask::none;
    const bool is_last = site == Site::final && place.stack == from_.reader_.model().spec().main();
    return is_last ? edits | Ask::read : edits;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (tap.site == Site::final) return read(cx, x);
    for (const Segment& s : tap.rows->list) {
      for (const PatchSite& at : patches_[static_cast<size_t>(s.request)]) {
        if (at.place.stack != tap.place.stack || at.place.layer != tap.place.layer || at.site != tap.site) continue;
        const int32_t first = at.position < 0 ? 0 : at.position - s.position;
        if (first < 0 || first >= s.rows) continue;  // in another chunk
        replace(cx, at, x.slice(0, s.first_row + first, at.position < 0 ? s.rows : 1), s.position + first);
      }
    }
  }

 private:
  void replace(Context& cx, const PatchSite& at, Tensor rows, int64_t position) const {
    const std::vector<float>& clean = from_.values_.at({at.place.stack, at.place.layer, at.site});
    const int64_t wide = rows.shape().count() / rows.dim(0);
    const auto before = cx.arena.mark();
    Tensor with = cx.upload(
        std::span(clean).subspan(static_cast<size_t>(position * wide), static_cast<size_t>(rows.dim(0) * wide)),
        rows.shape());
    if (at.head >= 0) {
      rows = rows.slice(1, at.head, 1);
      with = with.slice(1, at.head, 1);
    }
    cx.kernels.copy(cx.exec, {.y = rows, .x = with});
    cx.arena.rewind(before);
  }

  void read(Context& cx, const Tensor& states) const {
    std::vector<size_t> texts;
    std::vector<float> wanted;
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].position != from_.row_) continue;
      texts.push_back(static_cast<size_t>(rows_[r].text));
      const std::vector<float> row = host_floats(states.slice(0, static_cast<int64_t>(r), 1));
      wanted.insert(wanted.end(), row.begin(), row.end());
    }
    if (texts.empty()) return;
    const Tensor in = cx.upload(wanted, {std::ssize(texts), states.dim(1)});
    const std::vector<float> logits = host_floats(from_.reader_.model().head().read_out(cx, in));
    const size_t wide = logits.size() / texts.size();
    for (size_t i = 0; i < texts.size(); ++i) take_(texts[i], std::span(logits).subspan(i * wide, wide));
  }

  const Patcher& from_;
  std::span<const Patch> patches_;
  Take take_;
  std::set<Key> edited_;
  std::vector<PassTexts::At> rows_;
};

Patcher::Patcher(Reader& reader, TokenText clean, TokenText corrupt, int64_t row)
    : reader_(reader), texts_{std::move(clean), std::move(corrupt)}, row_(row) {
  const TokenText &a = texts_[0], &b = texts_[1];
  QKV_CHECK(reader.model().spec().vocabulary > 0, "a ", reader.model().spec().family,
            " without a vocabulary has no answer", Hint("take a model with a head"));
  QKV_CHECK(a.ids.size() == b.ids.size() && a.source.size() == b.source.size(), "the clean text has ", lengths_of(a),
            " and the corrupt one ", lengths_of(b),
            Hint("patching puts a position's values at the same position: choose words of as many tokens each; "
                 "qkv tokenize shows where a text is split"));
  QKV_CHECK(!a.ids.empty(), "the texts have no tokens", Hint("give them a few words each"));
  QKV_CHECK(a.ids != b.ids || a.source != b.source, "clean and corrupt are the same ", a.ids.size(), " tokens",
            Hint("change the word that the answer depends on"));
  if (row_ < 0) row_ = std::ssize(a.ids) - 1;
  QKV_CHECK(row_ < std::ssize(a.ids), "no token ", row_, ": the texts have ", a.ids.size(), " tokens, 0 to ",
            std::ssize(a.ids) - 1, Hint("tokens are counted from 0"));
  const std::array<Patch, 2> none;
  Probe probe(*this, none,
              [&](size_t text, std::span<const float> logits) { logits_[text].assign(logits.begin(), logits.end()); });
  reader_.look(texts_, probe);
}

void Patcher::read_clean(std::span<const Patch> patches) {
  std::set<Key> missing;
  for (const Patch& patch : patches) {
    for (const PatchSite& at : patch) {
      QKV_ASSERT(has_rows(at.site), name_of(at.site), " has no rows of the text");
      const Key key{at.place.stack, at.place.layer, at.site};
      if (!values_.contains(key)) missing.insert(key);
    }
  }
  if (missing.empty()) return;
  Values probe(missing, values_);
  reader_.look({texts_.data(), 1}, probe);
  for (const auto& [stack, layer, site] : missing) {
    QKV_ASSERT(values_.contains({stack, layer, site}), "the model has no ", name_of(site), " in layer ", layer);
  }
}

void Patcher::each(std::span<const Patch> patches,
                   const std::function<void(size_t patch, std::span<const float> logits)>& take,
                   const Reader::Finished& finished) {
  if (patches.empty()) return;
  read_clean(patches);
  const std::vector<TokenText> copies(patches.size(), corrupt());
  Probe probe(*this, patches, take);
  reader_.look(copies, probe, finished);
}

PatchOutcome Patcher::outcome(std::span<const Patch> patches, int32_t answer, int32_t wrong,
                              const Reader::Finished& finished) {
  const auto difference = [&](std::span<const float> logits) {
    return static_cast<double>(logits[static_cast<size_t>(answer)]) -
           static_cast<double>(logits[static_cast<size_t>(wrong)]);
  };
  QKV_CHECK(answer != wrong, "the answer and the wrong one are both token ", answer, Hint("name two different tokens"));
  PatchOutcome made{.clean = difference(logits_[0]), .corrupt = difference(logits_[1]), .patched = {}};
  QKV_CHECK(std::abs(made.clean - made.corrupt) > 1e-6, "the clean text prefers the answer by ", made.clean,
            " and the corrupt one by ", made.corrupt, ": nothing is lost that could come back",
            Hint("choose texts with different answers"));
  made.patched.resize(patches.size());
  each(
      patches, [&](size_t i, std::span<const float> logits) { made.patched[i] = difference(logits); }, finished);
  return made;
}

}  // namespace qkv

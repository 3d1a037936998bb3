#include "inspect/cut/ablation.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "base/printable.h"
#include "core/host_values.h"
#include "ops/ops.h"

namespace qkv {
namespace {

using Key = std::pair<Stack, int16_t>;
Key key_of(Place place) {
  return {place.stack, place.layer};
}

// Changes some columns [N, 1, ...] of x: in place, or under a tape in a copy, whose gradient they get none of.
template <class Change>
void change_columns(Context& cx, Tensor& x, const std::vector<int16_t>& columns, const Change& change) {
  Tensor y = x;
  if (cx.tape != nullptr) {
    y = cx.make(x.shape(), x.dtype());
    cx.kernels.copy(cx.exec, {.y = y, .x = x});
  }
  for (const int16_t c : columns) change(y.slice(1, c, 1), c);
  if (cx.tape == nullptr) return;
  cx.tape->record("cut", [x, y, columns](Backward& bk) {
    const Grad dx = bk.grad(x);
    const Tensor dy = bk.dy(y);
    for (const int16_t c : columns) bk.kernels.fill(bk.exec, {.y = dy.slice(1, c, 1), .value = 0});
    if (dx) bk.kernels.copy(bk.exec, {.y = dx.tensor, .x = dy, .add = dx.add});
  });
  x = y;
}

const ExpertsSpec* experts_at(const ModelSpec& spec, size_t layer) {
  const std::vector<LayerSpec>& layers = spec.main_stack().layers;
  return layer < layers.size() && layers[layer].feed.experts ? &*layers[layer].feed.experts : nullptr;
}

}  // namespace

const char* name_of(Ablation ablation) {
  return ablation == Ablation::zero ? "zero" : ablation == Ablation::mean ? "mean" : "resample";
}

std::string name_of(const ExpertId& expert) {
  return "L" + std::to_string(expert.layer) + "E" + std::to_string(expert.expert);
}

std::vector<ExpertId> all_experts(const ModelSpec& spec) {
  std::vector<ExpertId> all;
  for (size_t i = 0; i < spec.main_stack().layers.size(); ++i) {
    const ExpertsSpec* experts = experts_at(spec, i);
    for (int64_t e = 0; experts != nullptr && e < experts->count; ++e) {
      all.push_back({static_cast<int16_t>(i), static_cast<int16_t>(e)});
    }
  }
  return all;
}

std::vector<ExpertId> parse_experts(const ModelSpec& spec, std::string_view text) {
  const std::vector<ExpertId> all = all_experts(spec);
  QKV_CHECK(!all.empty(), "a ", spec.family, " of this config has no experts",
            Hint("experts are in Mixtral and alike"));
  std::vector<ExpertId> found;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string name(text.substr(at, comma - at));
    at = comma + 1;
    const auto same = [&](const ExpertId& e) {
      const std::string known = name_of(e);
      return std::equal(known.begin(), known.end(), name.begin(), name.end(),
                        [](char a, char b) { return a == b || (a >= 'A' && a + ('a' - 'A') == b); });
    };
    const auto expert = std::find_if(all.begin(), all.end(), same);
    QKV_CHECK(expert != all.end(), "no expert ", printable(name), ": this ", spec.family, " has ", name_of(all.front()),
              " to ", name_of(all.back()), Hint("experts are written L1E3, several with commas"));
    found.push_back(*expert);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

const HeadOutputs::OfAttention& HeadOutputs::at(const HeadId& head) const {
  const auto found = all_.find({head.stack, head.layer});
  QKV_ASSERT(found != all_.end() && head.head < found->second.heads, "layer ", head.layer, " was not measured");
  return found->second;
}

std::span<const float> HeadOutputs::mean(const HeadId& head) const {
  const OfAttention& here = at(head);
  return std::span(here.mean).subspan(static_cast<size_t>(head.head * here.width), static_cast<size_t>(here.width));
}

std::span<const float> HeadOutputs::elsewhere(const HeadId& head, int64_t text, int64_t position) const {
  const OfAttention& here = at(head);
  const auto texts = static_cast<uint64_t>(here.texts.size());
  const PhiloxKey key = fold({.site = static_cast<uint32_t>(Site::attn_z)});
  const uint64_t step = 1 + random_u32(key, static_cast<uint64_t>(text), 0) % (texts - 1);
  const std::vector<float>& other = here.texts[(static_cast<uint64_t>(text) + step) % texts];
  const int64_t each = here.heads * here.width, rows = std::ssize(other) / each;
  return std::span(other).subspan(static_cast<size_t>(position % rows * each + head.head * here.width),
                                  static_cast<size_t>(here.width));
}

// Sums, or keeps, what every head brings.
class OutputsProbe : public ReadingProbe {
 public:
  OutputsProbe(HeadOutputs& into, size_t texts, bool keeps) : into_(into), texts_(texts) { into.keeps_rows_ = keeps; }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return site == Site::attn_z ? Ask::read : Ask::none; }
  void visit(Context&, const Tap& tap, Tensor& z) override {
    HeadOutputs::OfAttention& here = into_.all_[key_of(tap.place)];
    here.heads = z.dim(1);
    here.width = z.dim(2);
    const auto each = static_cast<size_t>(here.heads * here.width);
    std::vector<double>& sum = sums_[key_of(tap.place)];
    sum.resize(each);
    here.texts.resize(into_.keeps_rows_ ? texts_ : 0);
    const std::vector<float> values = host_floats(z);
    for (const Segment& s : tap.rows->list) {
      const auto first = values.begin() + s.first_row * static_cast<std::ptrdiff_t>(each);
      const auto end = first + s.rows * static_cast<std::ptrdiff_t>(each);
      for (auto at = first; at != end; ++at) sum[static_cast<size_t>(at - first) % each] += static_cast<double>(*at);
      rows_[key_of(tap.place)] += s.rows;
      if (into_.keeps_rows_) {
        std::vector<float>& text = here.texts[static_cast<size_t>(s.request)];
        text.insert(text.end(), first, end);
      }
    }
  }
  void finish() {
    for (const auto& [place, sum] : sums_) {
      for (const double s : sum) {
        into_.all_[place].mean.push_back(static_cast<float>(s / static_cast<double>(rows_[place])));
      }
    }
  }

 private:
  HeadOutputs& into_;
  size_t texts_;
  std::map<Key, std::vector<double>> sums_;
  std::map<Key, int64_t> rows_;
};

std::shared_ptr<const HeadOutputs> measure_outputs(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                   const Reader::Finished& finished) {
  const bool keeps = ablation == Ablation::resample;
  QKV_CHECK(!keeps || texts.size() > 1, "one text has no other to take a head's output from",
            Hint("give more texts, or replace heads by their mean"));
  auto made = std::make_shared<HeadOutputs>();
  OutputsProbe probe(*made, texts.size(), keeps);
  reader.look(texts, probe, finished);
  probe.finish();
  return made;
}

CutProbe::CutProbe(const ModelSpec& spec, Cut cut, std::shared_ptr<const HeadOutputs> outputs)
    : cut_(std::move(cut)), outputs_(std::move(outputs)), main_(spec.main()) {
  QKV_ASSERT(cut_.ablation == Ablation::zero || cut_.heads.empty() ||
                 (outputs_ && outputs_->keeps_rows() == (cut_.ablation == Ablation::resample)),
             "a cut by ", name_of(cut_.ablation), " without what was measured for it");
  for (const HeadId& head : cut_.heads) heads_[key_of(head.place())].push_back(head.head);
  for (const ExpertId& expert : cut_.experts) experts_[{main_, expert.layer}].push_back(expert.expert);
  for (const auto& [place, closed] : experts_) {
    const ExpertsSpec* experts = experts_at(spec, static_cast<size_t>(place.second));
    QKV_ASSERT(experts != nullptr, "layer ", place.second, " has no experts");
    const int64_t left = experts->count - std::ssize(std::set(closed.begin(), closed.end()));
    QKV_CHECK(left >= experts->rule.top_k, "layer ", place.second, " is left with ", left,
              " experts but every token visits ", experts->rule.top_k, Hint("cut fewer of its ", experts->count));
    QKV_CHECK(experts->rule.groups == 1, "layer ", place.second, " chooses groups of experts first",
              Hint("experts in groups cannot be cut one by one"));
  }
}

Ask CutProbe::ask(Place place, Site site) const {
  const bool edits = (site == Site::attn_z && heads_.contains(key_of(place))) ||
                     (site == Site::route_logits && experts_.contains(key_of(place)));
  return edits ? Ask::edit : Ask::none;
}

void CutProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  if (tap.site == Site::route_logits) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    return change_columns(cx, x, experts_.at(key_of(tap.place)), [&](const Tensor& column, int16_t) {
      cx.kernels.fill(cx.exec, {.y = column, .value = kNever});
    });
  }
  change_columns(cx, x, heads_.at(key_of(tap.place)), [&](const Tensor& column, int16_t head) {
    replace(cx, tap, column, {tap.place.stack, tap.place.layer, head});
  });
}

void CutProbe::replace(Context& cx, const Tap& tap, const Tensor& column, const HeadId& head) const {
  if (cut_.ablation == Ablation::zero) return cx.kernels.fill(cx.exec, {.y = column, .value = 0});
  const int64_t rows = column.dim(0), width = column.dim(2);
  const auto before = cx.arena.mark();
  if (cut_.ablation == Ablation::mean) {
    const Tensor mean = cx.upload(outputs_->mean(head), {1, 1, width});
    cx.kernels.copy(cx.exec, {.y = column, .x = mean.expanded(0, rows)});
  } else {
    std::vector<float> other(static_cast<size_t>(rows * width));
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const std::span<const float> from = outputs_->elsewhere(head, s.request, s.position + r);
        std::copy(from.begin(), from.end(), other.begin() + (s.first_row + r) * width);
      }
    }
    cx.kernels.copy(cx.exec, {.y = column, .x = cx.upload(other, {rows, 1, width})});
  }
  cx.arena.rewind(before);
}

}  // namespace qkv

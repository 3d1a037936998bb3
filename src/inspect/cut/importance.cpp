#include "inspect/cut/importance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/permutation.h"
#include "core/host_values.h"

namespace qkv {
namespace {

// |sum_i z_i . dL/dz_i| of every head, text by text. Edits of a cut go through.
class GradientProbe : public ReadingProbe {
 public:
  explicit GradientProbe(CutProbe* cut) : cut_(cut) {}

  void begin(Context& cx, const PassTexts& pass) override {
    if (cut_ != nullptr) cut_->begin(cx, pass);
  }
  Ask ask(Place place, Site site) const override {
    const Ask edits = cut_ != nullptr ? cut_->ask(place, site) : Ask::none;
    return site == Site::attn_z ? edits | Ask::importance : edits;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (cut_ != nullptr && has(cut_->ask(tap.place, tap.site), Ask::edit)) cut_->visit(cx, tap, x);
  }
  void visit_importance(Context&, const Tap& tap, const Tensor& brought) override {
    const std::vector<float> values = host_floats(brought);  // [N, H]
    const auto heads = static_cast<size_t>(brought.dim(1));
    for (size_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (size_t i = h; i < values.size(); i += heads) sum += static_cast<double>(values[i]);
      texts[{tap.place.stack, tap.place.layer, static_cast<int16_t>(h)}].push_back({.sum = std::abs(sum), .count = 1});
    }
  }

  std::map<HeadId, std::vector<TextSum>> texts;

 private:
  CutProbe* cut_;
};

}  // namespace

std::vector<HeadImportance> gradient_importance(Reader& reader, std::span<const TokenText> texts, CutProbe* cut,
                                                const Reader::Finished& finished) {
  GradientProbe probe(cut);
  reader.backward(texts, probe, finished);
  const ModelSpec& spec = reader.model().spec();
  std::vector<HeadImportance> all;
  for (const Place place : all_attentions(spec)) {
    double squares = 0;
    const size_t first = all.size();
    for (int64_t h = 0; h < attention_at(spec, place).heads; ++h) {
      const HeadId head{place.stack, place.layer, static_cast<int16_t>(h)};
      all.push_back({.head = head, .raw = estimate(probe.texts[head])});
      squares += all.back().raw.mean * all.back().raw.mean;
    }
    for (size_t i = first; i < all.size() && squares > 0; ++i) all[i].importance = all[i].raw.mean / std::sqrt(squares);
  }
  return all;
}

std::vector<HeadImportance> ablation_importance(Reader& reader, std::span<const TokenText> texts, Ablation ablation,
                                                std::shared_ptr<const HeadOutputs> outputs,
                                                const Reader::Finished& finished) {
  const ModelSpec& spec = reader.model().spec();
  const std::vector<TextSum> whole = loss_sums(reader, texts);
  std::vector<HeadImportance> all;
  for (const HeadId& head : all_heads(spec)) {
    CutProbe probe(spec, {.heads = {head}, .ablation = ablation}, outputs);
    const Estimate delta = paired_difference(whole, loss_sums(reader, texts, &probe));
    all.push_back({.head = head, .raw = delta, .importance = delta.mean});
    if (finished && !finished(all.size())) break;
  }
  return all;
}

const char* name_of(Order order) {
  return order == Order::gradient ? "gradient" : order == Order::ablation ? "ablation" : "random";
}

std::vector<HeadId> cut_order(std::span<const HeadImportance> heads) {
  std::vector<HeadImportance> sorted(heads.begin(), heads.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const HeadImportance& a, const HeadImportance& b) { return a.importance < b.importance; });
  std::map<std::pair<Stack, int16_t>, int64_t> left;
  for (const HeadImportance& h : sorted) ++left[{h.head.stack, h.head.layer}];
  std::vector<HeadId> order;
  for (const HeadImportance& h : sorted) {
    if (--left[{h.head.stack, h.head.layer}] > 0) order.push_back(h.head);
  }
  return order;
}

std::vector<HeadId> random_order(const ModelSpec& spec, uint64_t seed) {
  const std::vector<HeadId> heads = all_heads(spec);
  const Permutation shuffled(heads.size(), fold({.seed = seed}));
  std::vector<HeadImportance> drawn;
  for (uint64_t i = 0; i < heads.size(); ++i) {
    drawn.push_back({.head = heads[i], .importance = static_cast<double>(shuffled(i))});
  }
  return cut_order(drawn);
}

namespace {

// The next heads to go by gradient: those already cut are no candidates, and count as heads their layers lack.
std::vector<HeadId> next_by_gradient(Reader& reader, std::span<const TokenText> texts, const CurveOptions& options,
                                     const std::vector<HeadId>& cut) {
  CutProbe probe(reader.model().spec(), {.heads = cut, .ablation = options.ablation}, options.outputs);
  std::vector<HeadImportance> left = gradient_importance(reader, texts, &probe);
  std::erase_if(left, [&](const HeadImportance& h) { return std::find(cut.begin(), cut.end(), h.head) != cut.end(); });
  return cut_order(left);
}

}  // namespace

PruningCurve pruning_curve(Reader& reader, std::span<const TokenText> texts, Order order, const CurveOptions& options) {
  constexpr int64_t kSteps = 10;
  const ModelSpec& spec = reader.model().spec();
  const int64_t heads = std::ssize(all_heads(spec)), must_stay = std::ssize(all_attentions(spec));
  const auto kept_at_end = static_cast<int64_t>(std::llround(options.lowest * static_cast<double>(heads)));
  const int64_t most = heads - std::max(must_stay, kept_at_end);
  std::vector<HeadId> by_order = options.known;
  if (by_order.empty() && order == Order::random) by_order = random_order(spec, options.seed);
  if (by_order.empty() && order == Order::ablation) {
    by_order = cut_order(ablation_importance(reader, texts, options.ablation, options.outputs));
  }
  const std::vector<TextSum> whole = loss_sums(reader, texts);
  PruningCurve curve{.order = order, .cut = {}, .points = {{.delta = paired_difference(whole, whole)}}};
  for (int64_t step = 1; step <= kSteps && std::ssize(curve.cut) < most; ++step) {
    const int64_t wanted = std::min(most, (step * heads + kSteps / 2) / kSteps), gone = std::ssize(curve.cut);
    if (wanted == gone) continue;
    if (order == Order::gradient) {
      const std::vector<HeadId> next = next_by_gradient(reader, texts, options, curve.cut);
      curve.cut.insert(curve.cut.end(), next.begin(), next.begin() + (wanted - gone));
    } else {
      curve.cut.assign(by_order.begin(), by_order.begin() + wanted);
    }
    CutProbe probe(spec, {.heads = curve.cut, .ablation = options.ablation}, options.outputs);
    curve.points.push_back({.heads = wanted,
                            .kept = 1 - static_cast<double>(wanted) / static_cast<double>(heads),
                            .delta = paired_difference(whole, loss_sums(reader, texts, &probe))});
    if (options.finished && !options.finished(curve.points.size())) break;
  }
  return curve;
}

}  // namespace qkv

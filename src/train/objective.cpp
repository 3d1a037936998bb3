#include "train/objective.h"

#include "base/error.h"
#include "data/token_text.h"
#include "ops/ops.h"

namespace qkv {
namespace {

// Keeps router logits and chosen experts for the balance loss, and forwards all calls to another probe.
class RouterProbe : public Probe {
 public:
  explicit RouterProbe(Probe* other) : other_(other) {}

  Ask ask(Place place, Site site) const override {
    const Ask others = other_ != nullptr ? other_->ask(place, site) : Ask::none;
    return site == Site::route_logits || site == Site::route_ids ? others | Ask::read : others;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    if (other_ != nullptr && other_->ask(tap.place, tap.site) != Ask::none) other_->visit(cx, tap, x);
    if (tap.site == Site::route_logits) uses.push_back({.logits = x});
    if (tap.site == Site::route_ids) uses.back().ids = x;
  }
  StatsWanted stats_wanted(Place place) const override {
    return other_ != nullptr ? other_->stats_wanted(place) : StatsWanted{};
  }
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override {
    if (other_ != nullptr) other_->visit_stats(cx, tap, stats);
  }
  void visit_importance(Context& cx, const Tap& tap, const Tensor& importance) override {
    if (other_ != nullptr) other_->visit_importance(cx, tap, importance);
  }
  std::vector<int32_t> rows_wanted(Place place) const override {
    return other_ != nullptr ? other_->rows_wanted(place) : std::vector<int32_t>{};
  }

  std::vector<ops::RouterUse> uses;

 private:
  Probe* other_;
};

void check_batch(const ModelSpec& spec, const TrainBatch& batch) {
  const auto check = [](const char* name, std::span<const int32_t> ids, int64_t limit, int32_t allowed = 0) {
    if (const auto bad = first_outside(ids, limit, allowed)) {
      QKV_FAIL("train: ", name, "[", *bad, "] is ", ids[*bad], " but must be in [0, ", limit, ")",
               Hint("the texts were prepared with another tokenizer"));
    }
  };
  check("ids", batch.ids, spec.vocabulary);
  check("targets", batch.targets, spec.vocabulary, TrainBatch::kIgnored);
  check("source ids", batch.source_ids, spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
  const auto check_lengths = [](const StackSpec& stack, std::span<const int32_t> lengths) {
    if (stack.positions.kind != PositionSpec::Kind::learned) return;
    for (const int32_t length : lengths) {
      QKV_CHECK(length <= stack.positions.count, "train: a text of ", length, " tokens but ", stack.positions.count,
                " positions", Hint("cut texts into shorter ones"));
    }
  };
  check_lengths(spec.kind == ModelSpec::Kind::encoder_only ? spec.encoder : spec.decoder, batch.lengths);
  check_lengths(spec.encoder, batch.source_lengths);
}

}  // namespace

BatchInput::BatchInput(Context& cx, const TrainBatch& batch)
    : rows(Rows::ragged(cx, batch.lengths)), input{.ids = cx.upload(batch.ids), .rows = &rows} {
  if (batch.source_ids.empty()) return;
  source_rows = Rows::ragged(cx, batch.source_lengths);
  input.source_ids = cx.upload(batch.source_ids);
  input.source_rows = &source_rows;
}

BatchLoss loss_of(Context& cx, const Model& model, const TrainBatch& batch, const LossSpec& spec,
                  const LossWeights& weights) {
  QKV_CHECK(!cx.recompute_layers || spec.balance == 0, "a balance loss of ", spec.balance,
            " needs the router logits of all layers, which recompute does not keep",
            Hint("train experts without recomputation, or without the balance loss"));
  const auto routers = std::make_shared<RouterProbe>(cx.probe);
  Probe* const others = cx.probe;
  if (spec.balance > 0) cx.probe = routers.get();
  cx.rng.first_row = static_cast<uint64_t>(batch.first_row);
  check_batch(model.spec(), batch);
  cx.indices_checked = true;

  const BatchInput in(cx, batch);
  const Head& head = model.head();
  const Tensor states = head.before_logits(cx, model.states(cx, in.input));
  cx.probe = others;
  const ops::Loss entropy = ops::cross_entropy(cx, states, head.weight(), cx.upload(batch.targets),
                                               {.bias = head.bias(),
                                                .rule = {.smoothing = spec.smoothing,
                                                         .z_loss = spec.z_loss,
                                                         .softcap = head.softcap(),
                                                         .ignore = TrainBatch::kIgnored},
                                                .divisor = weights.divisor});
  if (routers->uses.empty()) return {.loss = entropy.loss, .losses = entropy.losses, .probe = routers};
  const Tensor balance = ops::balance_loss(cx, routers->uses, 1);
  const Tensor weighted = ops::scale(cx, balance, spec.balance * weights.share);
  return {.loss = ops::add(cx, entropy.loss, weighted), .losses = entropy.losses, .balance = balance, .probe = routers};
}

}  // namespace qkv

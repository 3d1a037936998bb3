#include "train/optimizer.h"

#include <cmath>

#include "base/error.h"

namespace qkv {
namespace {

using Kind = OptimizerSpec::Kind;

bool is_bias(const std::string& name) {
  return name.ends_with(".bias");
}

Kind rule_for(const OptimizerSpec& spec, const WeightSpec& weight) {
  const bool turns = weight.in_layer && weight.shape.rank() >= 2 && !is_bias(weight.name) && read_by_products(weight);
  return spec.kind == Kind::muon && !turns ? Kind::adamw : spec.kind;
}

bool has_second(Kind rule) {
  return rule == Kind::adamw;
}
bool has_first(Kind rule, const OptimizerSpec& spec) {
  return rule != Kind::sgd || spec.momentum > 0;
}

}  // namespace

const char* name_of(OptimizerSpec::Kind kind) {
  return kind == Kind::adamw ? "adamw" : kind == Kind::muon ? "muon" : "sgd";
}

void validate(const OptimizerSpec& spec) {
  const auto check = [](const char* name, double value, double low, double high) {
    QKV_CHECK(std::isfinite(value) && value >= low && value <= high, "optimizer.", name, " is ", value,
              " but must be between ", low, " and ", high, Hint("see docs/training.md"));
  };
  check("beta1", spec.beta1, 0, 0.999999);
  check("beta2", spec.beta2, 0, 0.999999999);
  check("eps", spec.eps, 1e-30, 1);
  check("momentum", spec.momentum, 0, 0.999999);
  check("decay", spec.decay, 0, 100);
  check("clip", spec.clip, 0, 1e30);
}

namespace {

std::vector<Param*> trainable_of(Weights& weights) {
  std::vector<Param*> all;
  for (auto& [name, weight] : weights) {
    if (!weight.trainable) continue;
    QKV_CHECK(weight.format() == Format(DType::f32) || weight.format() == Format(DType::f64), "the weight '", name,
              "' is ", weight.format(), " but is trained in f32", Hint("load the model for training: masters are f32"));
    all.push_back(&weight);
  }
  return all;
}

}  // namespace

Optimizer::Optimizer(const ModelSpec& model, Weights& weights, const OptimizerSpec& spec, Comm& comm, int zero)
    : spec_(spec), data_parallel_(comm, trainable_of(weights), zero) {
  validate(spec);
  std::map<std::string, WeightSpec> known;
  for (WeightSpec& weight : weight_list(model)) known.emplace(weight.name, weight);
  for (size_t i = 0; i < data_parallel_.weights().size(); ++i) {
    Param* weight = data_parallel_.weights()[i];
    const Kind rule = rule_for(spec, known.at(weight->name()));
    Slot& slot = slots_.emplace_back(
        Slot{.weight = weight, .rule = rule, .decays = weight->shape().rank() >= 2 && !is_bias(weight->name())});
    if (!data_parallel_.keeps(i)) continue;
    if (has_first(rule, spec)) slot.first = zeros_like(*weight);
    if (has_second(rule)) slot.second = zeros_like(*weight);
  }
}

Storage Optimizer::zeros_like(const Param& weight) const {
  Storage made(weight.device(), weight.format(), weight.shape());
  const std::vector<std::byte> nothing(static_cast<size_t>(made.bytes()));
  made.device().upload(made.data(), nothing.data(), made.bytes());
  return made;
}

void Optimizer::step(Context& cx, double lr, FunctionRef<double()> factor) {
  std::optional<double> known;
  const auto once = [&] { return known ? *known : *(known = factor()); };
  std::vector<ops::AdamState> states;
  std::vector<ops::AdamWStep> adamw;
  std::vector<ops::MuonStep> muon;
  states.reserve(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    Param& w = *slot.weight;
    // Owned by another rank, or without a gradient (a bias used only to choose experts).
    if (!data_parallel_.keeps(i) || !w.gradient().defined()) continue;
    const double decay = slot.decays ? spec_.decay : 0;
    const Tensor first = slot.first.defined() ? Tensor(slot.first, w.shape()) : Tensor();
    switch (slot.rule) {
      case Kind::adamw:
        states.push_back({.m = first, .v = Tensor(slot.second, w.shape()), .step = steps_});
        adamw.push_back({&w, &states.back(), {lr, spec_.beta1, spec_.beta2, spec_.eps, decay}});
        break;
      case Kind::muon:
        muon.push_back({&w, first, {lr, spec_.momentum, decay}});
        break;
      case Kind::sgd:
        ops::sgd_step(cx, w, first, {lr, spec_.momentum, decay}, once());
        break;
    }
  }
  ops::muon_steps(cx, muon, once);
  ops::adamw_steps(cx, adamw, once);
  once();  // where nothing was updated
  data_parallel_.all_gather_weights(cx);
  ++steps_;
}

void Optimizer::gather_states() {
  if (data_parallel_.alone() || data_parallel_.zero() == 0) return;
  const auto ranks = static_cast<size_t>(data_parallel_.comm().size());
  const bool first_rank = data_parallel_.comm().rank() == 0;
  std::vector<std::byte> mine;
  for (size_t i = 0; i < slots_.size() && !first_rank; ++i) {
    if (!data_parallel_.keeps(i)) continue;
    for (const Storage* state : {&slots_[i].first, &slots_[i].second}) {
      if (!state->defined()) continue;
      const size_t at = mine.size();
      mine.resize(at + static_cast<size_t>(state->bytes()));
      state->device().download(mine.data() + at, state->data(), state->bytes());
    }
  }
  std::vector<std::vector<std::byte>> in(ranks);
  for (size_t i = 0; i < slots_.size() && first_rank; ++i) {
    if (data_parallel_.keeps(i)) continue;
    Slot& slot = slots_[i];
    const auto on_host = [&] { return Storage(cpu_device(), slot.weight->format(), slot.weight->shape()); };
    if (has_first(slot.rule, spec_)) slot.first = on_host();
    if (has_second(slot.rule)) slot.second = on_host();
    std::vector<std::byte>& from = in[static_cast<size_t>(data_parallel_.owner(i))];
    from.resize(from.size() + static_cast<size_t>(slot.first.bytes() + slot.second.bytes()));
  }
  std::vector<std::span<const std::byte>> send(ranks);
  if (!first_rank) send[0] = mine;
  const std::vector<std::span<std::byte>> receive(in.begin(), in.end());
  data_parallel_.comm().exchange(send, receive);
  std::vector<size_t> at(ranks, 0);
  for (size_t i = 0; i < slots_.size() && first_rank; ++i) {
    if (data_parallel_.keeps(i)) continue;
    const auto owner = static_cast<size_t>(data_parallel_.owner(i));
    for (const Storage* state : {&slots_[i].first, &slots_[i].second}) {
      if (!state->defined()) continue;
      state->device().upload(state->data(), in[owner].data() + at[owner], state->bytes());
      at[owner] += static_cast<size_t>(state->bytes());
    }
  }
}

void Optimizer::drop_gathered() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (data_parallel_.keeps(i)) continue;
    slots_[i].first = Storage();
    slots_[i].second = Storage();
  }
}

std::vector<Optimizer::State> Optimizer::states() const {
  std::vector<State> all;
  for (const Slot& slot : slots_) {
    const std::string& name = slot.weight->name();
    if (slot.first.defined()) all.push_back({"m." + name, Tensor(slot.first, slot.weight->shape())});
    if (slot.second.defined()) all.push_back({"v." + name, Tensor(slot.second, slot.weight->shape())});
  }
  return all;
}

int64_t Optimizer::bytes(const OptimizerSpec& spec, const WeightSpec& weight) {
  const Kind rule = rule_for(spec, weight);
  const int64_t each = weight.shape.count() * size_of(DType::f32);
  return each * ((has_first(rule, spec) ? 1 : 0) + (has_second(rule) ? 1 : 0));
}

}  // namespace qkv

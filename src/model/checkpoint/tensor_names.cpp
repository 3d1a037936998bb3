#include "model/checkpoint/tensor_names.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace qkv {
namespace {}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

TensorNames::TensorNames(ModelSpec spec) : spec_(std::move(spec)), weights_(weight_list(spec_)) {
  std::sort(weights_.begin(), weights_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

const WeightSpec* TensorNames::find(const std::string& weight) const {
  const auto at = std::lower_bound(weights_.begin(), weights_.end(), weight,
                                   [](const WeightSpec& a, const std::string& b) { return a.name < b; });
  return at != weights_.end() && at->name == weight ? &*at : nullptr;
}

const WeightSpec& TensorNames::weight(const std::string& name) const {
  const WeightSpec* found = find(name);
  QKV_ASSERT(found != nullptr, "the model has no weight '", name, "'");
  return *found;
}

void TensorNames::add(NamedTensor stored) {
  if (stored.shape.empty()) {
    using Layout = NamedTensor::Layout;
    int64_t outputs = 0;
    Shape shape;
    for (const NamedPart& part : stored.parts) {
      shape = weight(part.weight).shape;
      const int axis = part.weight.ends_with(".bias") || shape.rank() == 1 ? -1 : -2;
      outputs += shape[axis];
      shape = shape.with(axis, outputs);
    }
    for (int axis = stored.parts.front().expert >= 0 ? 1 : 0; axis < shape.rank(); ++axis) {
      stored.shape.push_back(shape[axis]);
    }
    const bool matrix = stored.shape.size() >= 2 && !stored.parts.front().weight.ends_with(".bias");
    if (matrix && (stored.layout == Layout::transposed || stored.layout == Layout::interleaved)) {
      std::swap(stored.shape[stored.shape.size() - 1], stored.shape[stored.shape.size() - 2]);
    }
  }
  list_.push_back(std::move(stored));
}

void TensorNames::tensor(const std::string& name, const std::string& weight) {
  if (has(weight)) add({.name = name, .parts = {{weight}}});
}

void TensorNames::linear(const std::string& name, const std::string& weight) {
  tensor(name + ".weight", weight);
  tensor(name + ".bias", weight + ".bias");
}

void TensorNames::transposed(const std::string& name, const std::string& weight) {
  if (has(weight)) add({.name = name + ".weight", .parts = {{weight}}, .layout = NamedTensor::Layout::transposed});
  tensor(name + ".bias", weight + ".bias");
}

void TensorNames::fused(const std::string& name, std::vector<std::string> weights, NamedTensor::Layout layout,
                        int64_t heads) {
  for (const std::string ending : {"", ".bias"}) {
    NamedTensor stored{.name = name + (ending.empty() ? ".weight" : ending), .layout = layout, .heads = heads};
    if (!ending.empty() && layout == NamedTensor::Layout::transposed) stored.layout = NamedTensor::Layout::plain;
    for (const std::string& weight : weights) {
      if (has(weight + ending)) stored.parts.push_back({weight + ending});
    }
    if (!stored.parts.empty()) add(std::move(stored));
  }
}

void TensorNames::tensor_as(NamedTensor stored) {
  if (has(stored.parts.front().weight)) add(std::move(stored));
}

void TensorNames::experts(const std::string& prefix, const std::string& suffix, const std::string& weight) {
  const WeightSpec* spec = find(weight);
  if (spec == nullptr) return;
  for (int64_t e = 0; e < spec->shape[0]; ++e) {
    add({.name = prefix + std::to_string(e) + suffix, .parts = {{weight, e}}});
  }
}

void TensorNames::norms_stored_for(double offset) {
  for (NamedTensor& stored : list_) {
    const std::string& name = stored.parts.front().weight;
    if (weight(name).part == Part::norm && !name.ends_with(".bias")) stored.shift = spec_.norm.offset - offset;
  }
}

void TensorNames::ignore(std::string pattern) {
  ignored_.push_back(std::move(pattern));
}

bool TensorNames::ignores(const std::string& name) const {
  return std::any_of(ignored_.begin(), ignored_.end(), [&](const std::string& p) { return matches(p, name); });
}

void TensorNames::check_complete() const {
  std::set<std::string> named, tensors;
  for (const NamedTensor& stored : list_) {
    QKV_ASSERT(tensors.insert(stored.name).second, "the family names the tensor '", stored.name, "' twice");
    for (const NamedPart& part : stored.parts) {
      const bool fresh = named.insert(part.weight + (part.expert < 0 ? "" : "#" + std::to_string(part.expert))).second;
      QKV_ASSERT(fresh, "the family names the weight '", part.weight, "' twice");
      if (part.expert >= 0) named.insert(part.weight);
    }
  }
  for (const WeightSpec& weight : weights_) {
    QKV_ASSERT(named.contains(weight.name), "the family does not say where the weight '", weight.name, "' is stored");
  }
}

}  // namespace qkv

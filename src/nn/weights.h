// The weights of a model by name. Layers hold pointers to them, which stay valid when a Weights is moved.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/param.h"

namespace qkv {

class Weights {
 public:
  Weights() = default;
  Weights(Weights&&) = default;
  Weights& operator=(Weights&&) = default;

  Param& add(Param weight) {
    std::string name = weight.name();
    const auto [at, fresh] = all_.try_emplace(std::move(name), std::move(weight));
    QKV_ASSERT(fresh, "weight '", at->first, "' was added twice");
    return at->second;
  }

  const Param* find(std::string_view name) const {
    const auto at = all_.find(name);
    return at == all_.end() ? nullptr : &at->second;
  }
  const Param& at(std::string_view name) const {
    const Param* weight = find(name);
    QKV_ASSERT(weight != nullptr, "the model has no weight '", name, "'");
    return *weight;
  }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  size_t size() const { return all_.size(); }

 private:
  std::map<std::string, Param, std::less<>> all_;
};

}  // namespace qkv

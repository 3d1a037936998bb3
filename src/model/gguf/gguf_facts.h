// Typed access to the metadata of a GGUF model; errors name the file and the key.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "base/error.h"
#include "io/gguf.h"
#include "model/gguf/gguf_rope.h"

namespace qkv {

// The file's keys under its architecture, and its tensors by name.
class GgufFacts {
 public:
  GgufFacts(const Gguf& gguf, std::span<const StoredTensor> entries) : gguf_(gguf), entries_(entries) {
    arch_ = gguf.text("general.architecture");
  }

  const std::string& arch() const { return arch_; }
  const std::string& name() const { return gguf_.name(); }
  const Gguf& gguf() const { return gguf_; }
  std::span<const StoredTensor> entries() const { return entries_; }
  std::string key(const std::string& key) const { return arch_ + "." + key; }
  bool has(const std::string& suffix) const { return gguf_.has(key(suffix)); }

  int64_t whole(const std::string& suffix, int64_t low = 0, int64_t high = int64_t{1} << 31) const {
    const int64_t value = gguf_.is_array(key(suffix)) ? same_in_all_layers(suffix) : gguf_.integer(key(suffix));
    QKV_CHECK(value >= low && value <= high, name(), ": key ", key(suffix), " is ", value, " but must lie in [", low,
              ", ", high, "]", Hint("the file is damaged, or was written by a program that means something else"));
    return value;
  }
  // A list with a value per layer; the families here have layers of one shape.
  int64_t same_in_all_layers(const std::string& suffix) const {
    const std::vector<int64_t> values = gguf_.integers(key(suffix));
    QKV_CHECK(!values.empty(), name(), ": key ", key(suffix), " is an empty list", Hint("the file is damaged"));
    const auto other = std::ranges::find_if(values, [&](int64_t v) { return v != values.front(); });
    QKV_CHECK(other == values.end(), name(), ": key ", key(suffix), " is ", values.front(), " in layer 0 but ", *other,
              " in layer ", other - values.begin(), Hint("only models whose layers have one shape are read"));
    return values.front();
  }
  int64_t whole_or(const std::string& suffix, int64_t otherwise) const {
    return has(suffix) ? whole(suffix) : otherwise;
  }
  double number(const std::string& suffix) const {
    const double value = gguf_.number(key(suffix));
    QKV_CHECK(std::isfinite(value), name(), ": key ", key(suffix), " is ", value, " but must be a finite number",
              Hint("the file is damaged"));
    return as_written(static_cast<float>(value));
  }
  double number_or(const std::string& suffix, double otherwise) const {
    return has(suffix) ? number(suffix) : otherwise;
  }
  std::string text_or(const std::string& suffix, const std::string& otherwise) const {
    return has(suffix) ? std::string(gguf_.text(key(suffix))) : otherwise;
  }

  const StoredTensor* tensor(const std::string& tensor) const {
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.name == tensor; });
    return at == entries_.end() ? nullptr : &*at;
  }

 private:
  const Gguf& gguf_;
  std::span<const StoredTensor> entries_;
  std::string arch_;
};

}  // namespace qkv

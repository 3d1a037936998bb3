#include "base/json_key_set.h"

#include <algorithm>
#include <string>

#include "base/json_reader.h"
#include "base/seeded_hash.h"

namespace qkv {

bool JsonKeySet::insert(std::string_view key, const char* quote) {
  if (3 * (count_ + 1) > 2 * slots_.size()) grow();
  const auto hash = static_cast<uint32_t>(seeded_hash(key));
  const size_t at = free_or_same(hash, &key);
  if (slots_[at].end != 0) return false;
  slots_[at] = {hash, static_cast<uint32_t>(quote - document_.data()) + 1};
  ++count_;
  return true;
}

size_t JsonKeySet::free_or_same(uint32_t hash, const std::string_view* key) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask, looked_at = 1;
  while (slots_[at].end != 0 && !(key != nullptr && slots_[at].hash == hash && is_at(slots_[at], *key))) {
    at = (at + 1) & mask;
    ++looked_at;
  }
  longest_search_ = std::max(longest_search_, looked_at);
  return at;
}

bool JsonKeySet::is_at(Slot slot, std::string_view key) const {
  std::string spare;
  JsonReader in({document_.substr(slot.end - 1), document_, 0}, "", {.bytes = SIZE_MAX});
  return in.string(spare) == key;
}

void JsonKeySet::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot slot : old) {
    if (slot.end != 0) slots_[free_or_same(slot.hash, nullptr)] = slot;
  }
}

}  // namespace qkv

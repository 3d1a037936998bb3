#include "text/tokenizer/vocab.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/seeded_hash.h"

namespace qkv {

void Vocab::reserve(size_t tokens, size_t bytes) {
  texts_.reserve(bytes);
  places_.reserve(tokens);
  const size_t wanted = std::max<size_t>(tokens + tokens / 2 + 1, 16);
  if (wanted > slots_.size() && count_ == 0) slots_.resize(wanted);
}

bool Vocab::add(std::string_view token, int64_t id, Check check) {
  const auto limit = static_cast<int64_t>(4 * check.tokens + 65536);
  QKV_CHECK(id >= 0 && id < limit && id < INT32_MAX, check.what, ": the id of token ", printable(token), " is ", id,
            " but must lie in [0, ", limit - 1, "]", Hint("ids count from 0 with few gaps; the file is damaged"));
  const auto index = static_cast<size_t>(id);
  QKV_CHECK(!has(static_cast<int32_t>(id)), check.what, ": the id ", id, " belongs to both ",
            printable(this->token(static_cast<int32_t>(id))), " and ", printable(token),
            Hint("every token needs an id of its own"));
  if (index >= places_.size()) places_.resize(index + 1);
  places_[index] = {narrow<uint32_t>(texts_.size(), "bytes of all tokens"),
                    narrow<uint32_t>(token.size(), "bytes of a token")};
  narrow<uint32_t>(texts_.size() + token.size(), "bytes of all tokens");
  texts_ += token;
  if (3 * (count_ + 1) > 2 * slots_.size()) grow();
  const uint64_t hash = seeded_hash(token);
  Slot& slot = slot_for(token, hash);
  const bool is_new = slot.id < 0;
  slot = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(id)};
  ++count_;
  return is_new;
}

Vocab::Slot& Vocab::slot_for(std::string_view token, uint64_t hash) {
  for (size_t i = slot_of(hash);; i = i + 1 < slots_.size() ? i + 1 : 0) {
    Slot& slot = slots_[i];
    if (slot.id < 0 || (slot.hash == hash >> 32 && this->token(slot.id) == token)) return slot;
  }
}

int32_t Vocab::find(std::string_view token) const {
  if (slots_.empty()) return -1;
  const uint64_t hash = seeded_hash(token);
  for (size_t i = slot_of(hash);; i = i + 1 < slots_.size() ? i + 1 : 0) {
    const Slot& slot = slots_[i];
    if (slot.id < 0) return -1;
    if (slot.hash == hash >> 32 && this->token(slot.id) == token) return slot.id;
  }
}

void Vocab::grow() {
  std::vector<Slot> old(std::max<size_t>(2 * slots_.size(), 16));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const std::string_view text = token(slot.id);
    slot_for(text, seeded_hash(text)) = slot;
  }
}

}  // namespace qkv

#include "base/json_members.h"

#include <functional>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/printable.h"

namespace qkv {
namespace {

// The keys of an object: a hash table of places in the text, because a set of strings would take more than the text.
class KeySet {
 public:
  explicit KeySet(std::string_view document) : document_(document), slots_(64) {}

  // The key is the string whose opening quote is at `quote`. False if it was there before.
  bool insert(std::string_view key, const char* quote) {
    if (3 * (count_ + 1) > 2 * slots_.size()) grow();
    const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(key));
    const size_t at = free_or_same(hash, &key);
    if (slots_[at].end != 0) return false;
    slots_[at] = {hash, static_cast<uint32_t>(quote - document_.data()) + 1};
    ++count_;
    return true;
  }

 private:
  struct Slot {
    uint32_t hash = 0, end = 0;  // place of the opening quote + 1; 0: free
  };

  size_t free_or_same(uint32_t hash, const std::string_view* key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].end != 0 && !(key != nullptr && slots_[at].hash == hash && is_at(slots_[at], *key))) {
      at = (at + 1) & mask;
    }
    return at;
  }

  bool is_at(Slot slot, std::string_view key) const {
    std::string spare;
    JsonReader in({document_.substr(slot.end - 1), document_, 0}, "", {.bytes = SIZE_MAX});
    return in.string(spare) == key;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot slot : old) {
      if (slot.end != 0) slots_[free_or_same(slot.hash, nullptr)] = slot;
    }
  }

  std::string_view document_;
  std::vector<Slot> slots_;  // open addressing
  size_t count_ = 0;
};

}  // namespace

void scan_json_members(JsonText text, std::string_view what, JsonTextMember member, JsonMemberLimits limits) {
  QKV_CHECK(text.document().size() < std::numeric_limits<uint32_t>::max(), what, ": the JSON text has ",
            text.document().size(), " bytes but may have at most 4 GiB",
            Hint("this is probably not the file you meant"));
  JsonReader in(text, what, {.bytes = SIZE_MAX});
  KeySet keys(text.document());
  size_t count = 0;
  std::string name;
  in.members([&](std::string_view key) {
    name = key;
    if (!keys.insert(key, in.key_begin())) in.fail_twice(key);
    QKV_CHECK(++count <= limits.members, what, ": holds more than ", limits.members, " members",
              Hint("no real file has so many: it is damaged or made to do harm"));
    member(name, in.skip());
  });
  in.end();
}

void parse_json_members(JsonText text, std::string_view what, JsonMember member, JsonMemberLimits limits) {
  const std::string where = std::string(what) + ": ";
  const auto parsed = [&](const std::string& key, JsonText value) {
    member(key, parse_json(value, where + printable(key), {.depth = limits.depth, .bytes = limits.bytes}));
  };
  scan_json_members(text, what, parsed, limits);
}

void scan_json_elements(JsonText text, std::string_view what, FunctionRef<void(JsonText element)> element) {
  JsonReader in(text, what, {.bytes = SIZE_MAX});
  in.elements([&] { element(in.skip()); });
  in.end();
}

}  // namespace qkv

#include "text/chat/ordered_json.h"

#include <set>
#include <string>

#include "base/json_reader.h"

namespace qkv {
namespace {

// The recursion depth is limited by the reader.
void read_ordered(JsonReader& in, JsonMemory& memory, OrderedJson& out) {
  using Kind = JsonReader::Kind;
  switch (in.kind()) {
    case Kind::object: {
      out = OrderedJson::object();
      auto& members = out.get_ref<OrderedJson::object_t&>();
      memory.take(JsonMemory::kAllocation + sizeof(members));
      std::set<std::string, std::less<>> seen;
      in.members([&](std::string_view key) {
        if (!seen.emplace(key).second) in.fail_twice(key);
        constexpr size_t kSetNode = 32;
        memory.take(JsonMemory::kAllocation + kSetNode);
        memory.take_string(key.size());
        memory.take_string(key.size());
        memory.take_element(members);
        members.push_back({std::string(key), nullptr});
        read_ordered(in, memory, members.back().second);
      });
      return;
    }
    case Kind::array: {
      out = OrderedJson::array();
      auto& list = out.get_ref<OrderedJson::array_t&>();
      memory.take(JsonMemory::kAllocation + sizeof(list));
      in.elements([&] {
        memory.take_element(list);
        read_ordered(in, memory, list.emplace_back());
      });
      return;
    }
    case Kind::string: {
      std::string spare;
      const std::string_view text = in.string(spare);
      memory.take_string(text.size());
      out = text;
      return;
    }
    case Kind::number: {
      const JsonNumber number = in.number();
      if (number.kind == JsonNumber::Kind::integer) {
        out = number.integer;
      } else {
        out = number.real;
      }
      return;
    }
    case Kind::boolean:
      out = in.boolean();
      return;
    case Kind::null:
      in.null();
      out = nullptr;
  }
}

}  // namespace

OrderedJson parse_ordered_json(std::string_view text, std::string_view what, JsonLimits limits) {
  JsonReader in(text, what, limits);
  JsonMemory memory(in, limits.tree + text.size());
  OrderedJson out;
  read_ordered(in, memory, out);
  in.end();
  return out;
}

}  // namespace qkv

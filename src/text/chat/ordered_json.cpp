#include "text/chat/ordered_json.h"

#include <set>
#include <string>

#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

// Builds the value at item `at` of the tape and moves `at` past it. The recursion depth is limited by the tape.
OrderedJson build(const JsonTape& tape, size_t& at, std::string_view what) {
  using Kind = JsonTape::Kind;
  const size_t here = at++;
  switch (tape.kind(here)) {
    case Kind::boolean:
      return tape.integer(here) != 0;
    case Kind::integer:
      return tape.integer(here);
    case Kind::number:
      return tape.number(here);
    case Kind::string:
      return std::string(tape.text(here));
    case Kind::open_array: {
      OrderedJson out = OrderedJson::array();
      while (tape.kind(at) != Kind::close_array) out.push_back(build(tape, at, what));
      ++at;
      return out;
    }
    case Kind::open_object: {
      OrderedJson out = OrderedJson::object();
      auto& members = out.get_ref<OrderedJson::object_t&>();
      std::set<std::string_view> seen;
      while (tape.kind(at) != Kind::close_object) {
        const std::string_view key = tape.text(at++);
        QKV_CHECK(seen.insert(key).second, what, ": the key ", printable(key), " appears twice in one object",
                  Hint("keep one of the two"));
        members.push_back({std::string(key), build(tape, at, what)});
      }
      ++at;
      return out;
    }
    default:
      return nullptr;
  }
}

}  // namespace

OrderedJson parse_ordered_json(std::string_view text, std::string_view what, JsonLimits limits) {
  TapedPart whole[1];
  const Json plain = parse_json(text, what, limits, whole);
  size_t at = 0;
  if (whole[0].tape.size() > 0) return build(whole[0].tape, at, what);
  return OrderedJson::parse(plain.dump());  // a scalar
}

}  // namespace qkv

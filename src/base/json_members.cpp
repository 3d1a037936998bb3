#include "base/json_members.h"

#include <limits>

#include "base/error.h"
#include "base/json_key_set.h"
#include "base/json_reader.h"
#include "base/printable.h"

namespace qkv {
void scan_json_members(JsonText text, std::string_view what, JsonTextMember member, JsonMemberLimits limits) {
  QKV_CHECK(text.document().size() < std::numeric_limits<uint32_t>::max(), what, ": the JSON text has ",
            text.document().size(), " bytes but may have at most 4 GiB",
            Hint("this is probably not the file you meant"));
  JsonReader in(text, what, {.bytes = SIZE_MAX});
  JsonKeySet keys(text.document());
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

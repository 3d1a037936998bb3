#include "base/json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/printable.h"

namespace {

template <class AnyJson>
std::string first_not_utf8(const AnyJson& json) {
  using Handler = nlohmann::detail::error_handler_t;
  const auto good = [](const AnyJson& text) {  // nothing to leave out, nothing to replace
    return text.dump(-1, ' ', false, Handler::ignore) == text.dump(-1, ' ', false, Handler::replace);
  };
  if (json.is_string()) return good(json) ? "" : json.template get<std::string>();
  for (auto at = json.begin(); json.is_structured() && at != json.end(); ++at) {
    if (json.is_object() && !good(AnyJson(at.key()))) return at.key();
    if (std::string found = first_not_utf8(*at); !found.empty()) return found;
  }
  return "";
}

// As in nlohmann/json.hpp.
template <class AnyJson>
std::string dump_json(const AnyJson& json, int indent, char indent_char, bool ensure_ascii,
                      nlohmann::detail::error_handler_t error_handler) {
  std::string text;
  nlohmann::detail::serializer<AnyJson> serializer(nlohmann::detail::output_adapter<char, std::string>(text),
                                                   indent_char, error_handler);
  try {
    serializer.dump(json, indent >= 0, ensure_ascii, indent >= 0 ? static_cast<unsigned>(indent) : 0);
  } catch (const nlohmann::json::type_error& error) {
    constexpr int kInvalidUtf8 = 316;
    if (error.id != kInvalidUtf8) throw;
    QKV_FAIL("a text is not UTF-8, which JSON needs: ", qkv::printable(first_not_utf8(json)),
             qkv::Hint("if it is the name of a file, rename it; otherwise convert it, for example with  iconv"));
  }
  return text;
}

}  // namespace

template <>
std::string nlohmann::json::dump(int indent, char indent_char, bool ensure_ascii, error_handler_t error_handler) const {
  return dump_json(*this, indent, indent_char, ensure_ascii, error_handler);
}
template <>
std::string nlohmann::ordered_json::dump(int indent, char indent_char, bool ensure_ascii,
                                         error_handler_t error_handler) const {
  return dump_json(*this, indent, indent_char, ensure_ascii, error_handler);
}

namespace qkv {
namespace {

using Kind = JsonReader::Kind;

void read_tree(JsonReader& in, JsonMemory& memory, Json& out) {
  switch (in.kind()) {
    case Kind::object: {
      memory.take(JsonMemory::kAllocation + sizeof(Json::object_t));
      out = Json::object();
      auto& members = out.get_ref<Json::object_t&>();
      in.members([&](std::string_view key) {
        constexpr size_t kTreeNode = 32;  // of std::map, around each pair
        memory.take(JsonMemory::kAllocation + kTreeNode + sizeof(Json));
        memory.take_string(key.size());
        const auto [slot, is_new] = members.try_emplace(std::string(key));
        if (!is_new) in.fail_twice(key);
        read_tree(in, memory, slot->second);
      });
      return;
    }
    case Kind::array: {
      memory.take(JsonMemory::kAllocation + sizeof(Json::array_t));
      out = Json::array();
      auto& list = out.get_ref<Json::array_t&>();
      in.elements([&] {
        memory.take_element(list);
        read_tree(in, memory, list.emplace_back());
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
      if (number.kind == JsonNumber::Kind::real) {
        out = number.real;
      } else if (number.kind == JsonNumber::Kind::large || number.integer >= 0) {
        out = number.kind == JsonNumber::Kind::large ? number.large : static_cast<uint64_t>(number.integer);
      } else {
        out = number.integer;
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

// Edit distance: insert, delete or replace a byte, or swap two neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

Json parse_json(JsonText text, std::string_view what, JsonLimits limits) {
  JsonReader in(text, what, limits);
  JsonMemory memory(in, limits.tree + text.text().size());
  Json out;
  read_tree(in, memory, out);
  in.end();
  return out;
}

std::string nearest_key(std::string_view word, std::span<const std::string_view> known) {
  std::string_view nearest;
  size_t smallest = SIZE_MAX;
  for (const std::string_view candidate : known) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    const size_t limit = longer / 3;
    // The length difference is a lower bound; this also avoids a huge table for a huge word.
    if (longer - shorter > limit) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance <= limit && distance < smallest) {
      nearest = candidate;
      smallest = distance;
    }
  }
  return std::string(nearest);
}

}  // namespace qkv

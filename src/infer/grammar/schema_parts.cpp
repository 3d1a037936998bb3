#include "infer/grammar/schema_parts.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/json.h"

namespace qkv::grammar {
namespace {

constexpr std::array<std::string_view, 29> kKeywords{"type",
                                                     "enum",
                                                     "const",
                                                     "properties",
                                                     "required",
                                                     "additionalProperties",
                                                     "minProperties",
                                                     "maxProperties",
                                                     "items",
                                                     "prefixItems",
                                                     "minItems",
                                                     "maxItems",
                                                     "uniqueItems",
                                                     "minLength",
                                                     "maxLength",
                                                     "pattern",
                                                     "format",
                                                     "minimum",
                                                     "maximum",
                                                     "exclusiveMinimum",
                                                     "exclusiveMaximum",
                                                     "multipleOf",
                                                     "anyOf",
                                                     "oneOf",
                                                     "allOf",
                                                     "$ref",
                                                     "$defs",
                                                     "definitions",
                                                     "$schema"};
constexpr std::array<std::string_view, 9> kAnnotations{"title",    "description", "default",    "examples", "$comment",
                                                       "readOnly", "writeOnly",   "deprecated", "$id"};
constexpr size_t kMostBranches = 100, kMostParts = 200;

template <class List>
bool is_in(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

void check_schema_keywords(const SchemaPart& part) {
  for (const auto& [key, value] : part.json->items()) {
    if (key == "$id" && part.at != "#") {
      fail_keyword(part.at, key, "is supported only at the root", "refer to schemas with #/$defs/NAME");
    }
    if (is_in(kKeywords, key) || is_in(kAnnotations, key)) continue;
    const std::string near = nearest_key(key, kKeywords);
    fail_keyword(
        part.at, key, "is not supported",
        near.empty() ? "say it with other keywords: nothing of a schema is left aside" : "did you mean " + near + "?");
  }
}

}  // namespace

void fail_keyword(const std::string& at, std::string_view keyword, const std::string& what, std::string_view hint) {
  QKV_FAIL("the schema's keyword ", keyword, " at ", pointer(at, keyword), " ", what, Hint(hint));
}

std::string pointer(const std::string& at, std::string_view key) {
  std::string out = at + "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Together::key() const {
  if (never) return "false";
  std::vector<std::string> places;
  for (const SchemaPart& part : parts) places.push_back(part.at);
  for (const SchemaPart& choice : choices) places.push_back(choice.at);
  std::sort(places.begin(), places.end());
  std::string out;
  for (const std::string& place : places) out += place + '\n';
  return out;
}

size_t Together::copy_steps() const {
  size_t bytes = 0;
  for (const SchemaPart& part : parts) bytes += part.at.size();
  for (const SchemaPart& choice : choices) bytes += choice.at.size();
  for (const std::string& place : chosen) bytes += place.size();
  return 4 * (1 + parts.size() + choices.size() + chosen.size()) + bytes / 2;
}

Together SchemaParts::together(const std::vector<SchemaPart>& all) const {
  Together out;
  std::vector<std::string> path;
  for (const SchemaPart& part : all) add(part, out, path);
  return out;
}

Together SchemaParts::branch(const Together& all, size_t n) const {
  budget_.spend(all.copy_steps());
  Together out = all;
  const SchemaPart choice = out.choices.back();
  out.choices.pop_back();
  out.chosen.push_back(choice.at);
  std::vector<std::string> path;
  add({&(*choice.json)[n], choice.at + "/" + std::to_string(n)}, out, path);
  return out;
}

void SchemaParts::add(const SchemaPart& part, Together& out, std::vector<std::string>& path) const {
  constexpr size_t kKeywordSteps = 8;  // to check one
  budget_.spend(out.parts.size() + path.size() + kKeywordSteps * (1 + part.json->size()) + part.at.size() / 8);
  QKV_CHECK(!is_in(path, part.at), "the schema at ", part.at, " refers to itself with nothing in between",
            Hint("a $ref may lead back to its own schema only inside properties or items"));
  if (part.json->is_boolean()) {
    out.never = out.never || !part.json->get<bool>();
    return;
  }
  QKV_CHECK(part.json->is_object(), "the schema at ", part.at, " is ", part.json->type_name(),
            Hint("a schema is an object, true or false"));
  const auto same = [&](const SchemaPart& other) { return other.at == part.at; };
  if (std::any_of(out.parts.begin(), out.parts.end(), same)) {
    for (const char* keyword : {"anyOf", "oneOf"}) {
      QKV_CHECK(!part.json->contains(keyword) || !is_in(out.chosen, pointer(part.at, keyword)), "the schema at ",
                part.at, " refers to itself with nothing in between",
                Hint("a $ref may lead back to its own schema only inside properties or items"));
    }
    return;
  }
  check_schema_keywords(part);
  QKV_CHECK(out.parts.size() < kMostParts, "at ", part.at, " more than ", kMostParts, " schemas hold at once",
            Hint("flatten allOf and $ref"));
  out.parts.push_back(part);
  path.push_back(part.at);
  if (const auto reference = part.json->find("$ref"); reference != part.json->end()) {
    if (!reference->is_string()) fail_keyword(part.at, "$ref", "is not a string", "write \"#/$defs/NAME\"");
    add(resolved(reference->get<std::string>(), part.at), out, path);
  }
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    const auto list = part.json->find(keyword);
    if (list == part.json->end()) continue;
    if (!list->is_array() || list->empty() || list->size() > kMostBranches) {
      fail_keyword(part.at, keyword, "is not a list of 1 to " + std::to_string(kMostBranches) + " schemas",
                   "write [{...}, {...}]");
    }
    const SchemaPart choice{&*list, pointer(part.at, keyword)};
    if (std::string_view(keyword) != "allOf") {
      out.choices.push_back(choice);
      continue;
    }
    for (size_t i = 0; i < list->size(); ++i) add({&(*list)[i], choice.at + "/" + std::to_string(i)}, out, path);
  }
  path.pop_back();
}

SchemaPart SchemaParts::resolved(const std::string& reference, const std::string& at) const {
  const auto wrong = [&](const std::string& what) {
    fail_keyword(at, "$ref", "is " + reference + ", " + what, "schemas are referred to as # or #/$defs/NAME");
  };
  if (!reference.starts_with('#')) wrong("which is not in this document");
  if (reference.size() > 1 && reference[1] != '/') wrong("which is no JSON pointer");
  const OrderedJson* json = &root_;
  std::string place = "#";
  for (size_t begin = 2; begin <= reference.size() && reference.size() > 1;) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    std::string key;
    for (size_t i = begin; i < end; ++i) {
      const bool escape = reference[i] == '~' && i + 1 < end && (reference[i + 1] == '0' || reference[i + 1] == '1');
      key += escape ? (reference[++i] == '0' ? '~' : '/') : reference[i];
      if (reference[i] == '%') wrong("with a % escape, which is not supported");
    }
    place = pointer(place, key);
    budget_.spend(1 + json->size() / 4 + place.size() / 8);  // names are searched from the first
    size_t index = 0;
    const bool number = std::from_chars(key.data(), key.data() + key.size(), index).ptr == key.data() + key.size();
    if (json->is_object() && json->contains(key)) {
      json = &(*json)[key];
    } else if (json->is_array() && number && index < json->size()) {
      json = &(*json)[index];
    } else {
      wrong("and there is nothing");
    }
    begin = end + 1;
  }
  return {json, place};
}

}  // namespace qkv::grammar

#include "infer/grammar/schema_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "infer/grammar/pattern.h"

namespace qkv::grammar {
namespace {

using Names = std::vector<std::string_view>;

constexpr size_t kMostValues = 1000, kMostProperties = 500, kMostCounted = 1000;
constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kTypes{{{"null", kNull},
                                                                      {"boolean", kBoolean},
                                                                      {"integer", kInteger},
                                                                      {"number", kNumber | kInteger},
                                                                      {"string", kString},
                                                                      {"array", kArray},
                                                                      {"object", kObject}}};

// The keywords that say something of values of a type only.
struct Family {
  uint8_t types;
  Names keywords;
};
const std::array<Family, 4>& families() {
  static const std::array<Family, 4> all{
      {{kString, {"minLength", "maxLength", "pattern", "format"}},
       {kNumber | kInteger, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
       {kArray, {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
       {kObject, {"properties", "required", "additionalProperties", "minProperties", "maxProperties"}}}};
  return all;
}

uint8_t type_of(const OrderedJson& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_string()) return kString;
  if (value.is_array()) return kArray;
  if (value.is_object()) return kObject;
  if (value.is_number_integer()) return kInteger;
  const auto number = value.get<double>();
  return number == std::floor(number) ? kInteger : kNumber;
}

// Whole numbers as integers.
void unify_numbers(OrderedJson& json) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (json.is_structured()) {
    for (OrderedJson& inner : json) unify_numbers(inner);
  } else if (json.is_number_float()) {
    const auto number = json.get<double>();
    if (number == std::floor(number) && std::abs(number) < kLimit) json = static_cast<int64_t>(number);
  }
}

// One schema's keywords.
class Reader {
 public:
  Reader(const SchemaPart& part, Facts& facts, Budget& budget)
      : part_(part), json_(*part.json), facts_(facts), budget_(budget) {}

  void read() {
    if (const OrderedJson* type = find("type")) facts_.types &= types(*type);
    values();
    strings();
    numbers();
    counts("minItems", "maxItems", facts_.items);
    counts("minProperties", "maxProperties", facts_.properties);
    if (const OrderedJson* unique = find("uniqueItems")) {
      if (!unique->is_boolean()) fail("uniqueItems", "is not true or false", "write true");
      if (unique->get<bool>()) facts_.unique = true, facts_.unique_at = part_.at;
    }
  }

  const OrderedJson* find(const char* keyword) const {
    const auto found = json_.find(keyword);
    return found == json_.end() ? nullptr : &*found;
  }
  [[noreturn]] void fail(std::string_view keyword, const std::string& what, std::string_view hint) const {
    fail_keyword(part_.at, keyword, what, hint);
  }
  size_t place_bytes() const { return part_.at.size(); }
  SchemaPart inside(const char* keyword, const OrderedJson& json) const { return {&json, pointer(part_.at, keyword)}; }

 private:
  uint8_t types(const OrderedJson& type) const {
    uint8_t all = 0;
    const auto add = [&](const OrderedJson& name) {
      const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) {
        return name.is_string() && t.first == name.get_ref<const std::string&>();
      });
      if (known == kTypes.end())
        fail("type", "has " + name.dump() + ", which is no type",
             "object, array, string, number, integer, boolean or null");
      all |= known->second;
    };
    if (!type.is_array()) return add(type), all;
    for (const OrderedJson& name : type) add(name);
    return all;
  }

  void values() {
    const OrderedJson *list = find("enum"), *one = find("const");
    if (!list && !one) return;
    if (list && (!list->is_array() || list->size() > kMostValues)) {
      fail("enum", "is not a list of at most " + std::to_string(kMostValues) + " values", "write [\"a\", \"b\"]");
    }
    std::vector<OrderedJson> all;
    if (list) all.assign(list->begin(), list->end());
    if (one) list ? keep_common(all, {*one}) : all.push_back(*one);
    if (facts_.values) keep_common(all, *facts_.values);
    budget_.spend(8 * all.size());
    facts_.values = std::move(all);
  }

  // Keeps those of `some` that are among the others.
  void keep_common(std::vector<OrderedJson>& some, const std::vector<OrderedJson>& others) const {
    std::set<std::string> keys;
    for (const OrderedJson& value : others) keys.insert(value_key(value));
    std::erase_if(some, [&](const OrderedJson& value) { return !keys.contains(value_key(value)); });
  }

  // A text that is equal for equal values: 1 and 1.0 are.
  std::string value_key(const OrderedJson& value) const {
    OrderedJson same = value;
    unify_numbers(same);
    std::string key = same.dump();
    budget_.spend(16 + key.size());
    return key;
  }

  void strings() {
    Counts lengths{facts_.lengths.least, facts_.lengths.most};
    counts("minLength", "maxLength", lengths, kLongestCounted);
    facts_.lengths = {lengths.least, lengths.most};
    if (const OrderedJson* pattern = find("pattern")) {
      if (!pattern->is_string()) fail("pattern", "is not a string", "write a regular expression");
      facts_.patterns.emplace_back(pattern->get<std::string>(), pointer(part_.at, "pattern"));
    }
    if (const OrderedJson* format = find("format")) {
      const std::string_view known = format->is_string() ? format_pattern(format->get_ref<const std::string&>()) : "";
      if (known.empty())
        fail("format", "is " + format->dump() + ", which is not supported",
             std::string("supported are ") + kFormats + "; a pattern can say others");
      facts_.patterns.emplace_back(known, pointer(part_.at, "format"));
    }
  }

  void numbers() {
    Numbers& n = facts_.numbers;
    const auto bound = [&](const char* keyword) -> std::optional<Bound> {
      const OrderedJson* value = find(keyword);
      if (!value) return std::nullopt;
      if (!value->is_number()) fail(keyword, "is not a number", "write a number");
      return Bound{value->get<double>(), std::string_view(keyword).starts_with("exclusive")};
    };
    for (const char* keyword : {"minimum", "exclusiveMinimum"}) {
      if (const auto b = bound(keyword)) n.least = n.least ? tighter_least(*n.least, *b) : *b;
    }
    const auto turned = [](const Bound& b) { return Bound{-b.at, b.exclusive}; };
    for (const char* keyword : {"maximum", "exclusiveMaximum"}) {
      if (const auto b = bound(keyword)) n.most = n.most ? turned(tighter_least(turned(*n.most), turned(*b))) : *b;
    }
    if (const OrderedJson* divisor = find("multipleOf")) {
      const double value = divisor->is_number() ? divisor->get<double>() : 0;
      const double most = static_cast<double>(kLargestDivisor);
      const bool whole = value >= 1 && value <= most && value == std::floor(value);
      const int64_t both = whole ? std::lcm(n.multiple_of, static_cast<int64_t>(value)) : 0;
      if (both < 1 || both > kLargestDivisor) {
        fail("multipleOf", "is " + divisor->dump() + ", which is not supported",
             "whole numbers from 1 to " + std::to_string(kLargestDivisor) + " are");
      }
      n.multiple_of = both;
      n.integer = true;
    }
  }

  void counts(const char* least, const char* most, Counts& counts, size_t limit = kMostCounted) const {
    const auto count = [&](const char* keyword) -> std::optional<size_t> {
      const OrderedJson* value = find(keyword);
      if (!value) return std::nullopt;
      const double number = value->is_number() ? value->get<double>() : -1;
      if (number < 0 || number != std::floor(number))
        fail(keyword, "is " + value->dump() + ", which is no count", "write 0 or more");
      if (number > static_cast<double>(limit)) {
        fail(keyword, "is " + value->dump() + " but at most " + std::to_string(limit) + " are counted",
             "make it smaller, or leave it out");
      }
      return static_cast<size_t>(number);
    };
    if (const auto n = count(least)) counts.least = std::max(counts.least, *n);
    if (const auto n = count(most)) counts.most = std::min(counts.most.value_or(*n), *n);
  }

  const SchemaPart& part_;
  const OrderedJson& json_;
  Facts& facts_;
  Budget& budget_;
};

// A property must satisfy what each schema says of its name, or else of all other names.
void gather_properties(const std::vector<Reader>& readers, Facts& facts, Budget& budget) {
  bool says_other = false;
  std::vector<SchemaPart> other;
  const auto place_of = [&](const std::string& name) {
    budget.spend(4 + facts.named.size() / 4);
    size_t place = 0;
    while (place < facts.named.size() && facts.named[place].name != name) ++place;
    if (place == facts.named.size()) facts.named.push_back({.name = name});
    return place;
  };
  for (const Reader& reader : readers) {
    if (const OrderedJson* properties = reader.find("properties")) {
      if (!properties->is_object() || properties->size() > kMostProperties) {
        reader.fail("properties", "is not an object of at most " + std::to_string(kMostProperties) + " schemas",
                    "write {\"name\": {...}}");
      }
      for (const auto& member : properties->items()) place_of(member.key());
    }
    if (const OrderedJson* required = reader.find("required")) {
      const auto is_string = [](const OrderedJson& name) { return name.is_string(); };
      if (!required->is_array() || required->size() > kMostProperties ||
          !std::all_of(required->begin(), required->end(), is_string)) {
        reader.fail("required", "is not a list of names", "write [\"name\"]");
      }
      for (const OrderedJson& name : *required) {
        const size_t place = place_of(name.get<std::string>());  // it may add to the list
        facts.named[place].required = true;
      }
    }
    if (const OrderedJson* additional = reader.find("additionalProperties")) {
      says_other = true;
      facts.closed = facts.closed || *additional == false;
      other.push_back(reader.inside("additionalProperties", *additional));
    }
  }
  for (PropertyFacts& property : facts.named) {
    for (const Reader& reader : readers) {
      const OrderedJson* properties = reader.find("properties");
      budget.spend(8 + (properties ? properties->size() / 2 : 0) + (reader.place_bytes() + property.name.size()) / 8);
      if (properties && properties->contains(property.name)) {
        const SchemaPart all = reader.inside("properties", *properties);
        property.value.push_back({&(*properties)[property.name], pointer(all.at, property.name)});
      } else if (const OrderedJson* additional = reader.find("additionalProperties")) {
        property.value.push_back(reader.inside("additionalProperties", *additional));
      }
    }
  }
  // Where a schema names properties and says nothing of others, only those it names are written.
  if (says_other || facts.named.empty()) facts.other_properties = std::move(other);
}

void gather_items(const std::vector<Reader>& readers, Facts& facts, Budget& budget) {
  size_t count = 0;
  bool says_other = false;
  std::vector<SchemaPart> other;
  for (const Reader& reader : readers) {
    if (const OrderedJson* first = reader.find("prefixItems")) {
      if (!first->is_array() || first->size() > kMostCounted)
        reader.fail("prefixItems", "is not a list of at most " + std::to_string(kMostCounted) + " schemas",
                    "write [{...}]");
      count = std::max(count, first->size());
    }
    if (const OrderedJson* items = reader.find("items")) {
      if (items->is_array()) reader.fail("items", "is a list", "schemas by position are prefixItems");
      says_other = true;
      other.push_back(reader.inside("items", *items));
    }
  }
  facts.first_items.resize(count);
  for (size_t i = 0; i < count; ++i) {
    for (const Reader& reader : readers) {
      budget.spend(8 + reader.place_bytes() / 8);
      const OrderedJson *first = reader.find("prefixItems"), *items = reader.find("items");
      if (first && i < first->size()) {
        facts.first_items[i].push_back(
            {&(*first)[i], reader.inside("prefixItems", *first).at + "/" + std::to_string(i)});
      } else if (items) {
        facts.first_items[i].push_back(reader.inside("items", *items));
      }
    }
  }
  if (says_other || count == 0 || facts.items.least > count) facts.other_items = std::move(other);
}

}  // namespace

Facts facts_of(const std::vector<SchemaPart>& parts, Budget& budget) {
  constexpr size_t kPartSteps = 32;  // to look for each keyword
  Facts facts;
  std::vector<Reader> readers;
  for (const SchemaPart& part : parts) {
    budget.spend(kPartSteps);
    readers.emplace_back(part, facts, budget).read();
  }
  bool typed = false, limited = false;
  uint8_t spoken_of = 0;
  for (const Reader& reader : readers) {
    typed = typed || reader.find("type");
    for (const Family& family : families()) {
      for (const std::string_view keyword : family.keywords) {
        if (!reader.find(std::string(keyword).c_str())) continue;
        spoken_of |= family.types;
        limited = true;
        if (facts.values)
          reader.fail(keyword, "together with enum or const is not supported", "list only the values it allows");
      }
    }
  }
  facts.satisfying = facts.types;
  if (!typed && limited) facts.types &= spoken_of;  // {"minLength": 3} means a string
  if (facts.values) {
    std::erase_if(*facts.values, [&](const OrderedJson& v) { return (facts.types & type_of(v)) == 0; });
  }
  if ((facts.types & kNumber) == 0) facts.numbers.integer = true;
  gather_properties(readers, facts, budget);
  gather_items(readers, facts, budget);
  return facts;
}

Dfa contents_of(const Facts& facts, Budget& budget) {
  const Lengths& lengths = facts.lengths;
  if (lengths.most && *lengths.most < lengths.least) return {};
  Dfa dfa = string_contents(lengths, budget);
  for (const auto& [pattern, at] : facts.patterns) {
    dfa = intersection(dfa, pattern_matches(pattern, at, budget), budget);
  }
  return dfa;
}

}  // namespace qkv::grammar

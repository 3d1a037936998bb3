// What the keywords of schemas that hold together say of one value.
#pragma once

#include <optional>

#include "infer/grammar/json_number.h"
#include "infer/grammar/json_string.h"
#include "infer/grammar/schema_parts.h"

namespace qkv::grammar {

enum SchemaType : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,
  kString = 16,
  kArray = 32,
  kObject = 64
};
constexpr uint8_t kAllTypes = 127;

struct Counts {
  size_t least = 0;
  std::optional<size_t> most = {};
};

struct PropertyFacts {
  std::string name;
  std::vector<SchemaPart> value;
  bool required = false;
};

struct Facts {
  uint8_t types = kAllTypes;                       // that are written; kNumber comes with kInteger
  uint8_t satisfying = kAllTypes;                  // types of values that can satisfy the schema: at least those
  std::optional<std::vector<OrderedJson>> values;  // enum and const, those of the types
  // Strings.
  Lengths lengths = {};
  std::vector<std::pair<std::string, std::string>> patterns;  // of pattern and format, with their places
  // Numbers.
  Numbers numbers = {};
  // Arrays.
  Counts items = {};
  bool unique = false;
  std::string unique_at;
  std::vector<std::vector<SchemaPart>> first_items;
  std::optional<std::vector<SchemaPart>> other_items;  // none: there are none. Empty list: anything
  // Objects.
  Counts properties = {};
  std::vector<PropertyFacts> named;                         // in the order of the schema
  std::optional<std::vector<SchemaPart>> other_properties;  // none: none are written
  bool closed = false;                                      // the schema itself forbids others
};

// Of schemas without choices.
Facts facts_of(const std::vector<SchemaPart>& parts, Budget& budget);

Dfa contents_of(const Facts& facts, Budget& budget);  // of its strings

}  // namespace qkv::grammar

// Entities of a story: the language-independent meaning that both realisers express.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv::world {

struct Noun {
  std::string_view en, zh;
  std::string_view classifier;  // 一本书
  std::string_view unit = {};   // unit of an uncountable noun: a cup of tea
};

struct Adjective {
  std::string_view en, zh;
};

enum class EntityKind { person, animal, thing, place, name, number, group };
enum class Gender { none, male, female };

struct Entity {
  EntityKind kind = EntityKind::thing;
  Gender gender = Gender::none;
  int count = 1;
  int64_t value = 0;  // of a number
  const Noun* noun = nullptr;
  const Adjective* adjective = nullptr;
  // Words of a name are separated by spaces, in Chinese too. The short form is used for later mentions.
  std::string name, name_zh, short_name, short_name_zh;
  std::string_view at = {}, at_zh = {};  // "on", 上
  bool article = false;                  // the name takes "the"
  int members[2] = {-1, -1};             // of a group
};

}  // namespace qkv::world

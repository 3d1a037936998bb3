// Who and what a story is about: the meaning that both languages put into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv::world {

struct Noun {
  std::string_view en, zh;
  std::string_view classifier;  // 一本书
  std::string_view unit = {};   // what does not count by itself is counted by this: a cup of tea
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
  int64_t value = 0;  // a number's
  const Noun* noun = nullptr;
  const Adjective* adjective = nullptr;
  // A name's words stand apart by spaces, in Chinese too; the short form is for later mentions.
  std::string name, name_zh, short_name, short_name_zh;
  std::string_view at = {}, at_zh = {};  // "on", 上
  bool article = false;                  // a name with "the"
  int members[2] = {-1, -1};             // a group's
};

}  // namespace qkv::world

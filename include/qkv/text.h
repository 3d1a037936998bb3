// What a model is given to read: text, or token ids as they are.
#pragma once

#include <qkv/export.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace qkv::QKV_INLINE v1 {

// Text gets the special tokens the model expects; ids are taken as they are. A model that translates reads it as the
// source, and `target` is what it has written so far.
struct Text {
  Text(const char* utf8) : text(utf8) {}
  Text(std::string utf8) : text(std::move(utf8)) {}
  Text(std::vector<int32_t> token_ids) : ids(std::move(token_ids)), is_ids(true) {}
  static Text pair(std::string source, std::string target) {
    Text made(std::move(source));
    made.target = std::move(target);
    return made;
  }
  static Text pair(std::vector<int32_t> source, std::vector<int32_t> target) {
    Text made(std::move(source));
    made.target_ids = std::move(target);
    return made;
  }

  std::string text, target;
  std::vector<int32_t> ids, target_ids;
  bool is_ids = false;
};

// Many texts to measure something on: given ones, a file (of sentence pairs, source<TAB>target, for a model that
// translates), or stories of the built-in world: "world", "world:zh", "world:pairs", with kinds "world:zh:echo".
struct Data {
  Data(const char* file_or_world) : name(file_or_world) {}
  Data(std::string file_or_world) : name(std::move(file_or_world)) {}
  Data(std::vector<Text> given) : texts(std::move(given)) {}

  std::string name;
  std::vector<Text> texts = {};
  int64_t tokens = 20000;  // most tokens in all, of a file or the world
  int64_t window = 256;    // most tokens of one text; longer ones are cut
};

}  // namespace qkv::QKV_INLINEv1

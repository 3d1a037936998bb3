// Lexer for templates, with trim_blocks and lstrip_blocks on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::jinja {

struct Token {
  enum class Kind : uint8_t { data, print, end_print, block, end_block, name, text, integer, number, symbol, end };
  Kind kind = Kind::end;
  int line = 1;
  std::string text = {};  // data, unescaped string, name or operator
  int64_t integer = 0;
  double number = 0;
};

std::vector<Token> tokenize(std::string_view source, std::string_view what);

[[noreturn]] void fail_at(std::string_view what, int line, std::string_view problem, std::string_view hint);

}  // namespace qkv::jinja

// Recursive-descent parser: tokens to a Program, by Jinja's grammar.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/lexer.h"
#include "text/chat/jinja/program.h"

namespace qkv::jinja {

// Scope guard that counts the nesting depth of brackets, blocks and operators.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --depth_; }

 private:
  int& depth_;
};

// Token cursor and node factory.
class TokenReader {
 public:
  TokenReader(Program& program, std::vector<Token> tokens) : program_(program), tokens_(std::move(tokens)) {}

 protected:
  using Kind = Token::Kind;

  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(Kind kind) const { return current().kind == kind; }
  bool is_symbol(std::string_view mark) const { return is(Kind::symbol) && current().text == mark; }
  bool is_word(std::string_view word) const { return is(Kind::name) && current().text == word; }
  void skip() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  bool skip_symbol(std::string_view mark);
  bool skip_word(std::string_view word);
  void expect_symbol(std::string_view mark);
  std::string expect_name(std::string_view what);
  [[noreturn]] void fail(std::string_view problem, std::string_view hint) const;
  [[noreturn]] void unexpected(std::string_view wanted) const;

  Node& make(Node::Kind kind, int line);
  Node& make(Node::Kind kind, int line, std::vector<const Node*> parts);
  static Node::More& more(Node& node);
  void check_depth(int depth) const;

  Program& program_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

class ExpressionParser : public TokenReader {
 public:
  using TokenReader::TokenReader;

 protected:
  enum class Choice { allowed, no };  // whether "a if b else c" is allowed here
  const Node* expression(Choice choice = Choice::allowed);
  // "a, b" is a tuple, "a" is just a. The word `end` may follow.
  const Node* tuple(Choice choice = Choice::allowed, std::string_view end = "");
  const Node* target(std::string_view end = "");  // of for, set and with
  const Node* filters(const Node* input);         // "|a|b" after input, which may be null
  const Node* filter(const Node* input);          // "a" after "|"

 private:
  const Node* conditional();
  const Node* logical_or();
  const Node* logical_and();
  const Node* logical_not();
  const Node* compare();
  const Node* sum();
  const Node* concat();
  const Node* product();
  const Node* power();
  const Node* unary(bool with_filters);
  const Node* primary();
  const Node* literal_list();
  const Node* literal_dict();
  const Node* postfix(const Node* node);
  const Node* subscript(const Node* object);
  const Node* subscript_part();
  const Node* test(const Node* input);
  const Node* chain(Node::Kind kind, int line, std::vector<const Node*> parts, std::string operators);
  void arguments(Node& node);
  bool tuple_ends(std::string_view end) const;
  std::string dotted_name(std::string_view what);

 protected:
  // Names of macros' arguments that were read so far.
  struct SpecialNames {
    bool varargs = false, kwargs = false, caller = false;
  };
  SpecialNames read_;
};

}  // namespace qkv::jinja

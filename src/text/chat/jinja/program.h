// The syntax tree of a template. All nodes are owned by the Program.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/seeded_hash.h"
#include "text/chat/jinja/value.h"

namespace qkv::jinja {

struct Builtin;

inline constexpr int kDeepest = 64;                // nesting of blocks and brackets in a template, and of macro calls
inline constexpr size_t kLargestSource = 1 << 17;  // bytes of a template

struct Node {
  enum class Kind : uint8_t {
    // Expressions, with their parts.
    constant,
    name,
    list,
    tuple,
    dict,         // key, value, key, value, ...
    attribute,    // object
    item,         // object, key
    slice,        // from, to, step; each may be null
    call,         // what, arguments ...; more->rest and more->rest_named
    filter,       // input (null in a block), arguments ...
    test,         // input, arguments ...
    unary_minus,  // number
    unary_plus,   // number
    logical_not,  // operand
    arithmetic,   // first, operand ...; one operator before each operand
    concat,       // pieces ...
    compare,      // first, operand ...; one operator before each operand
    logical_and,  // operands ...
    logical_or,   // operands ...
    conditional,  // condition, then, else or null
    // Statements.
    data,
    print,         // what
    branch,        // conditions ...; one body each, and else_body
    loop,          // target, iterable, condition or null; body, else_body; flag: recursive
    set,           // target, value
    set_block,     // target, filter or null; body
    macro,         // default or null for each of the names; body; flag: the body of a call_block
    call_block,    // call, macro of the body
    with,          // target, value, target, value, ...; body
    filter_block,  // filter; body
    generation,    // body
    break_loop,
    continue_loop,
  };
  using Body = std::vector<const Node*>;
  struct More {
    std::vector<Body> bodies;
    Body else_body;
    std::vector<std::pair<std::string_view, const Node*>> named;  // arguments
    const Node* rest = nullptr;                                   // arguments from a list: *list
    const Node* rest_named = nullptr;                             // from a dict: **dict
    std::vector<int> names;                                       // of a macro's parameters
    bool takes_rest = false;                                      // a macro that reads varargs,
    bool takes_named = false;                                     // kwargs,
    bool takes_caller = false;                                    // caller
    std::string operators;
  };

  Kind kind = Kind::constant;
  int line = 0;
  bool flag = false;
  int name = -1;                      // of a name or a macro: index into Program::names
  const std::string* text = nullptr;  // of an attribute, a filter or a test
  const Builtin* builtin = nullptr;   // of a filter or a test; null if there is none of that name
  Value value;                        // of a constant or data
  std::vector<const Node*> parts;
  std::unique_ptr<More> more;
};

struct Program {
  std::string what;  // the file, for error messages
  Node::Body body;
  std::vector<const std::string*> names;
  std::unordered_map<std::string_view, int, SeededHash> name_ids;
  std::deque<std::string> texts;
  std::deque<MarkedText> constants;  // what the template itself writes
  std::deque<Node> nodes;

  const std::string* keep(std::string text) { return &texts.emplace_back(std::move(text)); }
  const MarkedText* keep_constant(std::string text) { return &constants.emplace_back(std::move(text)); }
  int id_of(std::string_view name) {
    if (const auto found = name_ids.find(name); found != name_ids.end()) return found->second;
    const int id = static_cast<int>(names.size());
    names.push_back(keep(std::string(name)));
    name_ids.emplace(*names.back(), id);
    return id;
  }
};

std::unique_ptr<const Program> parse(std::string_view source, std::string_view what);

}  // namespace qkv::jinja

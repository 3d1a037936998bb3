// Renders a Program: one Machine for one rendering. Every step costs fuel, and everything that could grow has a limit.
#pragma once

#include <cstdint>
#include <ctime>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/program.h"
#include "text/chat/jinja/value.h"
#include "text/chat/ordered_json.h"

namespace qkv::jinja {

struct JsonStyle;

inline constexpr size_t kFuel = 1'000'000;               // steps of one rendering
inline constexpr size_t kPerStep = 64;                   // bytes copied, or names looked through, for one step
inline constexpr size_t kLargestText = size_t{4} << 20;  // bytes of the output, and of any string on the way
inline constexpr size_t kLongestRange = 100'000;         // numbers of range()
inline constexpr int kDeepestEvaluation = 1500;  // expressions and statements within each other, over all macros
inline constexpr int kDeepestValue = 128;        // lists and dicts within each other

// Names and their values; a macro keeps the scope it stands in.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>> values;
};

// A macro, a function, or a method with its object.
struct Callable {
  const Node* macro = nullptr;
  Scope* scope = nullptr;
  const Builtin* builtin = nullptr;
  Value self;
};

// A running for loop. Items that pass its condition are looked for only when they are needed, as Jinja does it.
struct Loop {
  const Node* node = nullptr;
  Scope* outside = nullptr;
  std::vector<Value> source;
  size_t at = 0;            // of the source: what was not looked at yet
  std::deque<Value> ready;  // passed, and not yet had
  int64_t index0 = -1;
  Value before, current;
};

class Machine {
 public:
  Machine(const Program& program, std::time_t now);

  void define(std::string_view name, const Value& value);
  std::string run();

  // What filters, tests and methods work with.
  Value text(std::string text);
  Value list(std::vector<Value> items, List::Form form = List::Form::list);
  Value dict() { return dict_of(Kind::dict); }
  Value dict_of(Kind kind);  // a dict or a namespace
  Value callable(const Callable& callable);
  Value from_json(const OrderedJson& json, int depth = 0);

  void spend(size_t steps) {
    if (steps > fuel_) fail_without_fuel();
    fuel_ -= steps;
  }
  // Before work on a text: copying has weight 1, looking at each character more.
  void scan(size_t bytes, size_t weight = 1) { spend(1 + bytes * weight / kPerStep); }
  void scan_case(std::string_view text);  // before changing it to capitals or back
  void check_size(size_t bytes) const;    // of a text that grows
  void room_for(size_t bytes);            // before making a text
  [[noreturn]] void fail(std::string_view problem, std::string_view hint) const;
  [[noreturn]] void fail_without_fuel() const;
  [[noreturn]] void fail_undefined(const Value& value) const;
  void check_value_depth(int depth) const;

  std::string str(const Value& value);  // as Python's str()
  std::string json(const Value& value, const JsonStyle& style);
  bool equal(const Value& a, const Value& b, int depth = 0);
  bool less(const Value& a, const Value& b, int depth = 0);
  bool contains(const Value& in, const Value& what);
  bool compare(char op, const Value& a, const Value& b);  // = ! < > l(e) g(e) i(n) n(ot in)
  size_t length(const Value& value);
  std::vector<Value> items(const Value& value);  // what a loop over it sees
  size_t find(std::string_view in, std::string_view what, size_t from = 0);
  Value* lookup(Dict& dict, const Value& key);  // null if it has no such key
  void check_key(const Value& key) const;       // an Error for what Python does not take as a key
  void insert(Dict& dict, const Value& key, const Value& value);

  Value attribute(const Value& object, const std::string* name);
  Value item(const Value& object, const Value& key);
  Value slice(const Value& object, std::span<const Value> bounds);
  Value arithmetic(char op, const Value& a, const Value& b);
  Value integers(char op, int64_t a, int64_t b);
  Value numbers(char op, double a, double b);
  Value format(const Value& pattern, const Args& args);  // "%s" % arguments
  Value call(const Value& what, const Args& args);
  int64_t loop_length(Loop& loop);
  bool loop_peek(Loop& loop);  // whether another item follows
  std::time_t now() const { return now_; }

  // Alive while one builtin runs others.
  class Nested {
   public:
    explicit Nested(Machine& m) : m_(m) { m.go_deeper(); }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --m_.depth_; }

   private:
    Machine& m_;
  };

 private:
  enum class Flow { on, stop, next };

  // Alive while a node is worked on: counts it, and remembers its line for errors.
  class Step : Nested {
   public:
    Step(Machine& m, int line) : Nested(m) { m.line_ = line; }
  };
  void go_deeper();

  Flow run_body(const Node::Body& body);
  Flow run_statement(const Node& node);
  Flow run_branch(const Node& node);
  Flow run_loop(const Node& node);
  std::string run_aside(const Node::Body& body, Flow& flow);  // what the body would put out
  void assign(const Node& target, const Value& value);
  void bind(int name, const Value& value);
  void put_out(std::string_view text);
  bool passes(Loop& loop, const Value& value);
  Value loop_attribute(Loop& loop, std::string_view name, const std::string* asked);
  Value call_macro(const Callable& macro, const Args& args);

  Value evaluate(const Node& node);
  Value evaluate_container(const Node& node);
  Value evaluate_operator(const Node& node);
  Value evaluate_compare(const Node& node);
  Value evaluate_call(const Node& node);
  Value evaluate_item(const Node& node);
  Value evaluate_filter(const Node& node, const Value* block);  // of a block: what it would put out
  Args arguments(const Node& node);
  Value* find_name(int name);
  void append_repr(std::string& out, const Value& value, int depth);
  void append_json(std::string& out, const Value& value, const JsonStyle& style, int depth);

  const Program& program_;
  std::time_t now_;
  size_t fuel_ = kFuel;
  int line_ = 1, depth_ = 0, macros_ = 0;
  Scope root_;
  Scope* scope_ = &root_;
  std::string output_;
  std::string* out_ = &output_;
  // What values point to.
  std::deque<std::string> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Callable> callables_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
};

}  // namespace qkv::jinja

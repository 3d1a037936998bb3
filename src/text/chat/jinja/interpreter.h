// Tree-walking interpreter: renders a Program once. Every step costs fuel, and every size has a limit.
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
inline constexpr size_t kPerStep = 64;                   // bytes copied, or names searched, per step
inline constexpr size_t kLargestText = size_t{4} << 20;  // bytes of the output and of any string
inline constexpr size_t kLongestRange = 100'000;         // numbers of range()
inline constexpr int kDeepestEvaluation = 1500;          // nesting of expressions and statements, across macros
inline constexpr int kDeepestValue = 128;                // nesting of lists and dicts

// Variables by name id. A macro keeps the scope it is defined in.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>> values;
};

// A macro, a function, or a method with its object.
struct Callable {
  const Node* macro = nullptr;  // or the body of a {% call %}
  Scope* scope = nullptr;
  const Builtin* builtin = nullptr;
  Value self;
};

// A running for loop. As in Jinja, the condition is evaluated lazily, when the next item is needed.
struct Loop {
  const Node* node = nullptr;
  Scope* outside = nullptr;
  std::vector<Value> source;
  size_t at = 0;            // index of the next unchecked item of the source
  std::deque<Value> ready;  // passed the condition, not yet used
  int64_t index0 = -1;
  int depth0 = 0;  // of a recursive loop
  Value before, current;
  std::vector<Value> changed;  // what loop.changed() was given last
  bool has_changed = false;
};

// Whose text a JSON value holds.
enum class Origin { model, message, answer };

class Interpreter {
 public:
  Interpreter(const Program& program, std::time_t now);

  void define(std::string_view name, const Value& value);
  MarkedText run();

  // Used by filters, tests and methods.
  Value text(MarkedText text);
  Value list(std::vector<Value> items, List::Form form = List::Form::list);
  Value dict() { return dict_of(Kind::dict); }
  Value dict_of(Kind kind);  // a dict or a namespace
  Value callable(const Callable& callable);
  Value from_json(const OrderedJson& json, Origin origin, int depth = 0);
  Value from_messages(const OrderedJson& messages);  // each with the origin that its role says

  void spend(size_t steps) {
    if (steps > fuel_) fail_without_fuel();
    fuel_ -= steps;
  }
  // Charges fuel for work on a text: weight 1 for copying, more for work per character.
  void charge_text(size_t bytes, size_t weight = 1) { spend(1 + bytes * weight / kPerStep); }
  void charge_case_change(std::string_view text);  // before upper() or lower()
  void check_size(size_t bytes) const;             // of a growing text
  void charge_new_text(size_t bytes);              // size check and fuel for a new text
  [[noreturn]] void fail(std::string_view problem, std::string_view hint) const;
  [[noreturn]] void fail_without_fuel() const;
  [[noreturn]] void fail_undefined(const Value& value) const;
  void check_value_depth(int depth) const;

  MarkedText str(const Value& value);  // Python's str()
  MarkedText repr(const Value& value);
  MarkedText json(const Value& value, const JsonStyle& style);
  bool equal(const Value& a, const Value& b, int depth = 0);
  bool less(const Value& a, const Value& b, int depth = 0);
  bool contains(const Value& in, const Value& what);
  bool compare(char op, const Value& a, const Value& b);  // = ! < > l(e) g(e) i(n) n(ot in)
  size_t length(const Value& value);
  std::vector<Value> items(const Value& value);  // of an iteration
  size_t find(std::string_view in, std::string_view what, size_t from = 0);
  Value* lookup(Dict& dict, const Value& key);  // null if missing
  Value* lookup(Dict& dict, std::string_view key);
  void check_key(const Value& key, int depth = 0);  // unhashable keys are an Error
  void insert(Dict& dict, const Value& key, const Value& value);

  Value attribute(const Value& object, const std::string* name);
  Value item(const Value& object, const Value& key);
  Value slice(const Value& object, std::span<const Value> bounds);
  Value arithmetic(char op, const Value& a, const Value& b);
  Value integers(char op, int64_t a, int64_t b);
  Value numbers(char op, double a, double b);
  Value format(const Value& pattern, const Args& args);  // "%s" % arguments
  Value call(const Value& what, const Args& args);
  Value call_loop(Loop& loop, const Args& args);  // of a recursive loop
  int64_t loop_length(Loop& loop);
  bool loop_peek(Loop& loop);  // whether another item follows
  std::time_t now() const { return now_; }

  // Scope guard while one builtin runs others.
  class Nested {
   public:
    explicit Nested(Interpreter& interp) : interp_(interp) { interp.enter_level(); }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --interp_.depth_; }

   private:
    Interpreter& interp_;
  };

 private:
  enum class Flow { normal, break_loop, continue_loop };

  // Scope guard of a node: charges a step, counts the depth and sets the line for errors.
  class Step : Nested {
   public:
    Step(Interpreter& interp, int line) : Nested(interp) { interp.line_ = line; }
  };
  void enter_level();

  Flow run_body(const Node::Body& body);
  Flow run_statement(const Node& node);
  Flow run_branch(const Node& node);
  Flow run_loop(const Node& node, const Value& over, Scope* outside, int depth0);
  MarkedText render_aside(const Node::Body& body, Flow& flow);  // captures the output of the body
  Value callable_of(const Node& macro) { return callable({.macro = &macro, .scope = scope_}); }
  void assign(const Node& target, const Value& value);
  void bind(int name, const Value& value);
  void emit(const MarkedText& text);
  bool passes(Loop& loop, const Value& value);
  Value macro_attribute(const Node& macro, const std::string* name);
  Value loop_attribute(Loop& loop, std::string_view name, const std::string* asked);
  Value call_macro(const Callable& macro, const Args& args);
  void bind_rest(const Node& macro, const Args& args, std::vector<bool>& used);

  Value evaluate(const Node& node);
  Value evaluate_container(const Node& node);
  Value evaluate_operator(const Node& node);
  Value evaluate_compare(const Node& node);
  Value evaluate_call(const Node& node);
  Value evaluate_item(const Node& node);
  Value evaluate_filter(const Node& node, const Value* block);  // block: its output, for {% filter %}
  Args arguments(const Node& node);
  void add_rest(Args& args, const Node::More& more);
  Value* find_name(int name);
  void append_repr(MarkedText& out, const Value& value, int depth);
  void append_json(MarkedText& out, const Value& value, const JsonStyle& style, int depth);
  uint8_t mark_of(Origin origin);

  const Program& program_;
  std::time_t now_;
  size_t fuel_ = kFuel;
  int line_ = 1, depth_ = 0, macros_ = 0;
  Scope root_;
  Scope* scope_ = &root_;
  MarkedText output_;
  MarkedText* out_ = &output_;
  uint8_t answer_mark_ = MarkedText::kFirstAnswer;
  // Storage that values point to.
  std::deque<MarkedText> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Callable> callables_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
};

}  // namespace qkv::jinja

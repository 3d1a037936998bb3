// Calls of macros, of {% call %} bodies and of recursive loops.
#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "text/chat/jinja/interpreter.h"

namespace qkv::jinja {

Value Interpreter::call_loop(Loop& loop, const Args& args) {
  if (!loop.node->flag) fail("a loop that is not recursive cannot be called", "write {% for ... recursive %}");
  if (args.values.size() != 1 || !args.named.empty()) fail("loop takes one list", "write loop(list)");
  if (macros_ >= kDeepest) {
    fail("a loop calls itself more than " + std::to_string(kDeepest) + " levels deep", "does it go on for ever?");
  }
  MarkedText aside;
  MarkedText* out = std::exchange(out_, &aside);
  Scope* outer = std::exchange(scope_, loop.outside);
  ++macros_;
  run_loop(*loop.node, args.values[0], loop.outside, loop.depth0 + 1);
  --macros_;
  scope_ = outer;
  out_ = out;
  return text(std::move(aside));
}

// What a macro's parameters do not take: varargs, kwargs and caller, if its body reads them.
void Interpreter::bind_rest(const Node& macro, const Args& args, std::vector<bool>& used) {
  const Node::More& more = *macro.more;
  const auto define_here = [&](const char* name, const Value& value) {
    scope_->values.emplace_back(program_.name_ids.at(name), value);
  };
  const auto given = std::ranges::find(args.named, "caller", [](const auto& pair) { return pair.first; });
  const auto place = static_cast<size_t>(given - args.named.begin());
  const bool has_parameter =
      std::ranges::any_of(more.names, [&](int name) { return *program_.names[static_cast<size_t>(name)] == "caller"; });
  if (more.takes_caller && !has_parameter) {
    const bool free = given != args.named.end() && !used[place];
    define_here("caller", free ? given->second
                               : Value::undefined(program_.names[static_cast<size_t>(program_.name_ids.at("caller"))]));
    if (free) used[place] = true;
  }
  if (more.takes_named) {
    const Value left = dict();
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) insert(*left.dict, text({std::string(args.named[i].first), args.name_mark}), args.named[i].second);
    }
    define_here("kwargs", left);
  } else if (std::ranges::find(used, false) != used.end()) {
    fail("macro " + printable(*macro.text) + " is given a named argument that it does not take, or takes twice",
         "see its definition on line " + std::to_string(macro.line));
  }
  if (!more.takes_rest) return;
  std::vector<Value> rest;
  for (size_t i = macro.parts.size(); i < args.values.size(); ++i) rest.push_back(args.values[i]);
  define_here("varargs", list(std::move(rest), List::Form::tuple));
}

Value Interpreter::call_macro(const Callable& macro, const Args& args) {
  const Node& node = *macro.macro;
  const std::string name = "macro " + printable(*node.text);
  if (macros_ >= kDeepest) {
    fail(name + " is called more than " + std::to_string(kDeepest) + " levels deep", "does it call itself for ever?");
  }
  const Node::More& more = *node.more;
  if (args.values.size() > node.parts.size() && !more.takes_rest) {
    fail(name + " takes " + std::to_string(node.parts.size()) + " arguments but gets " +
             std::to_string(args.values.size()),
         "see its definition on line " + std::to_string(node.line));
  }
  Scope& inner = scopes_.emplace_back(Scope{.parent = macro.scope, .values = {}});
  std::vector<bool> used(args.named.size());
  Scope* outer = std::exchange(scope_, &inner);
  for (size_t i = 0; i < node.parts.size(); ++i) {
    const int parameter = more.names[i];
    const std::string& called = *program_.names[static_cast<size_t>(parameter)];
    spend(args.named.size());
    const auto given = std::ranges::find(args.named, called, [](const auto& pair) { return pair.first; });
    Value value = Value::undefined();
    if (i < args.values.size()) {
      value = args.values[i];
    } else if (given != args.named.end()) {
      value = given->second;
      used[static_cast<size_t>(given - args.named.begin())] = true;
    } else if (node.parts[i]) {
      value = evaluate(*node.parts[i]);
    }
    inner.values.emplace_back(parameter, value);
  }
  bind_rest(node, args, used);
  ++macros_;
  Flow flow = Flow::normal;
  Value result = text(render_aside(more.bodies[0], flow));
  --macros_;
  scope_ = outer;
  return result;
}

}  // namespace qkv::jinja

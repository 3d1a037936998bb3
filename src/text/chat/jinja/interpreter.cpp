#include "text/chat/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/lexer.h"

namespace qkv::jinja {

Interpreter::Interpreter(const Program& program, std::time_t now) : program_(program), now_(now) {
  for (size_t id = 0; id < program.names.size(); ++id) {
    if (const Builtin* function = find_function(*program.names[id])) {
      root_.values.emplace_back(static_cast<int>(id), callable({.builtin = function}));
    }
  }
}

void Interpreter::define(std::string_view name, const Value& value) {
  const auto found = program_.name_ids.find(name);
  if (found == program_.name_ids.end()) return;  // the template never asks for it
  if (Value* there = find_name(found->second)) {
    *there = value;
  } else {
    root_.values.emplace_back(found->second, value);
  }
}

MarkedText Interpreter::run() {
  run_body(program_.body);
  return std::move(output_);
}

Value Interpreter::text(MarkedText text) {
  charge_new_text(text.size());
  return Value::text_of(&texts_.emplace_back(std::move(text)));
}

Value Interpreter::list(std::vector<Value> items, List::Form form) {
  spend(1 + items.size());
  Value v = Value::of(Kind::list);
  v.list = &lists_.emplace_back();
  v.list->items = std::move(items);
  v.list->form = form;
  return v;
}

Value Interpreter::dict_of(Kind kind) {
  spend(1);
  Value v = Value::of(kind);
  v.dict = &dicts_.emplace_back();
  return v;
}

Value Interpreter::callable(const Callable& callable) {
  spend(1);
  Value v = Value::of(Kind::callable);
  v.callable = &callables_.emplace_back(callable);
  return v;
}

void Interpreter::check_size(size_t bytes) const {
  if (bytes > kLargestText) {
    fail("a string of " + std::to_string(bytes) + " bytes, but the limit is " + std::to_string(kLargestText),
         "shorten the messages; a template that does this with short ones is made to do harm");
  }
}

void Interpreter::charge_new_text(size_t bytes) {
  check_size(bytes);
  charge_text(bytes, 2);
}

void Interpreter::charge_case_change(std::string_view text) {
  const auto beyond_ascii = std::ranges::count_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  charge_text(text.size(), 8);
  spend(static_cast<size_t>(beyond_ascii));
}

void Interpreter::enter_level() {
  spend(1);
  if (++depth_ > kDeepestEvaluation) {
    fail("evaluated more than " + std::to_string(kDeepestEvaluation) + " levels deep",
         "does a macro call itself for ever?");
  }
}

void Interpreter::fail(std::string_view problem, std::string_view hint) const {
  fail_at(program_.what, line_, problem, hint);
}

void Interpreter::fail_without_fuel() const {
  fail("still not done after " + std::to_string(kFuel) + " steps",
       "shorten the messages; a template that does this with short ones is made to do harm");
}

void Interpreter::fail_undefined(const Value& value) const {
  fail((value.name ? printable(*value.name) : std::string("a value")) + " is undefined",
       "the template expects it; give it, or test it with 'is defined' first");
}

void Interpreter::check_value_depth(int depth) const {
  if (depth > kDeepestValue) {
    fail("lists and dicts nested more than " + std::to_string(kDeepestValue) + " levels deep", "flatten them");
  }
}

Value* Interpreter::find_name(int name) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    spend(scope->values.size() / kPerStep);
    for (auto& [id, value] : scope->values) {
      if (id == name) return &value;
    }
  }
  return nullptr;
}

void Interpreter::emit(const MarkedText& text) {
  if (text.size() + out_->size() > kLargestText) {
    fail("the output has more than " + std::to_string(kLargestText) + " bytes", "shorten the messages");
  }
  charge_text(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::run_body(const Node::Body& body) {
  for (const Node* node : body) {
    const Flow flow = run_statement(*node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run_statement(const Node& node) {
  const Step step(*this, node.line);
  switch (node.kind) {
    case Node::Kind::data:
      emit(*node.value.text);
      return Flow::normal;
    case Node::Kind::call_block: {
      const Node& called = *node.parts[0];
      const Value what = evaluate(*called.parts[0]);
      Args args = arguments(called);
      args.named.emplace_back("caller", callable_of(*node.parts[1]));
      emit(str(call(what, args)));
      return Flow::normal;
    }
    case Node::Kind::generation: {
      Flow flow = Flow::normal;
      MarkedText body = render_aside(node.more->bodies[0], flow);
      body.mark_generated();
      emit(body);
      return flow;
    }
    case Node::Kind::print: {
      const Value value = evaluate(*node.parts[0]);
      value.is(Kind::text) ? emit(*value.text) : emit(str(value));
      return Flow::normal;
    }
    case Node::Kind::branch:
      return run_branch(node);
    case Node::Kind::loop:
      return run_loop(node, evaluate(*node.parts[1]), scope_, 0);
    case Node::Kind::set:
      assign(*node.parts[0], evaluate(*node.parts[1]));
      return Flow::normal;
    case Node::Kind::macro: {
      bind(node.name, callable_of(node));
      return Flow::normal;
    }
    case Node::Kind::set_block:
    case Node::Kind::filter_block: {
      Flow flow = Flow::normal;
      Value value = text(render_aside(node.more->bodies[0], flow));
      if (flow != Flow::normal) return flow;
      if (node.kind == Node::Kind::filter_block) {
        emit(str(evaluate_filter(*node.parts[0], &value)));
      } else {
        if (node.parts[1]) value = evaluate_filter(*node.parts[1], &value);
        assign(*node.parts[0], value);
      }
      return Flow::normal;
    }
    case Node::Kind::with: {
      Scope& inner = scopes_.emplace_back(Scope{.parent = scope_, .values = {}});
      std::vector<Value> values;
      for (size_t i = 1; i < node.parts.size(); i += 2) values.push_back(evaluate(*node.parts[i]));
      Scope* outer = std::exchange(scope_, &inner);
      for (size_t i = 0; i < values.size(); ++i) assign(*node.parts[2 * i], values[i]);
      const Flow flow = run_body(node.more->bodies[0]);
      scope_ = outer;
      return flow;
    }
    case Node::Kind::break_loop:
      return Flow::break_loop;
    default:
      return Flow::continue_loop;
  }
}

Interpreter::Flow Interpreter::run_branch(const Node& node) {
  for (size_t i = 0; i < node.parts.size(); ++i) {
    if (truth(evaluate(*node.parts[i]))) return run_body(node.more->bodies[i]);
  }
  return run_body(node.more->else_body);
}

MarkedText Interpreter::render_aside(const Node::Body& body, Flow& flow) {
  MarkedText aside;
  MarkedText* out = std::exchange(out_, &aside);
  Scope* outer = std::exchange(scope_, &scopes_.emplace_back(Scope{.parent = scope_, .values = {}}));
  flow = run_body(body);
  scope_ = outer;
  out_ = out;
  return aside;
}

void Interpreter::bind(int name, const Value& value) {
  spend(scope_->values.size() / kPerStep);
  for (auto& [id, old] : scope_->values) {
    if (id == name) {
      old = value;
      return;
    }
  }
  scope_->values.emplace_back(name, value);
}

void Interpreter::assign(const Node& target, const Value& value) {
  if (target.kind == Node::Kind::name) {
    bind(target.name, value);
  } else if (target.kind == Node::Kind::attribute) {
    const Value space = evaluate(*target.parts[0]);
    if (!space.is(Kind::name_space)) {
      fail(std::string("cannot set ") + printable(*target.text) + " of a " + name_of(space),
           "only a namespace() can be changed");
    }
    if (Value* there = lookup(*space.dict, *target.text)) {
      *there = value;
    } else {
      insert(*space.dict, text(*target.text), value);
    }
  } else {
    const std::vector<Value> values = items(value);
    if (values.size() != target.parts.size()) {
      fail("cannot take " + std::to_string(values.size()) + " values apart into " +
               std::to_string(target.parts.size()) + " names",
           "name each of them");
    }
    for (size_t i = 0; i < values.size(); ++i) assign(*target.parts[i], values[i]);
  }
}

bool Interpreter::passes(Loop& loop, const Value& value) {
  if (loop.node->parts[2] == nullptr) return true;
  Scope* outer = std::exchange(scope_, &scopes_.emplace_back(Scope{.parent = loop.outside, .values = {}}));
  assign(*loop.node->parts[0], value);
  const bool passed = truth(evaluate(*loop.node->parts[2]));
  scope_ = outer;
  return passed;
}

bool Interpreter::loop_peek(Loop& loop) {
  while (loop.ready.empty() && loop.at < loop.source.size()) {
    const Value value = loop.source[loop.at++];
    if (passes(loop, value)) loop.ready.push_back(value);
  }
  return !loop.ready.empty();
}

int64_t Interpreter::loop_length(Loop& loop) {
  while (loop.at < loop.source.size()) {
    const Value value = loop.source[loop.at++];
    if (passes(loop, value)) loop.ready.push_back(value);
  }
  return loop.index0 + 1 + static_cast<int64_t>(loop.ready.size());
}

Interpreter::Flow Interpreter::run_loop(const Node& node, const Value& over, Scope* outside, int depth0) {
  Loop& loop = loops_.emplace_back();
  loop.node = &node;
  loop.outside = outside;
  loop.depth0 = depth0;
  loop.source = items(over);
  Value self = Value::of(Kind::loop);
  self.loop = &loop;
  const auto named = program_.name_ids.find("loop");
  Scope& inner = scopes_.emplace_back(Scope{.parent = outside, .values = {}});
  while (loop_peek(loop)) {
    loop.before = std::exchange(loop.current, loop.ready.front());
    loop.ready.pop_front();
    ++loop.index0;
    inner.values.clear();
    Scope* outer = std::exchange(scope_, &inner);
    if (named != program_.name_ids.end()) inner.values.emplace_back(named->second, self);
    assign(*node.parts[0], loop.current);
    const Flow flow = run_body(node.more->bodies[0]);
    scope_ = outer;
    if (flow == Flow::break_loop) break;
  }
  if (loop.index0 < 0) return run_body(node.more->else_body);
  return Flow::normal;
}

}  // namespace qkv::jinja

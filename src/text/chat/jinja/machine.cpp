#include "text/chat/jinja/machine.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/lexer.h"

namespace qkv::jinja {

Machine::Machine(const Program& program, std::time_t now) : program_(program), now_(now) {
  for (size_t id = 0; id < program.names.size(); ++id) {
    if (const Builtin* function = find_function(*program.names[id])) {
      root_.values.emplace_back(static_cast<int>(id), callable({.builtin = function}));
    }
  }
}

void Machine::define(std::string_view name, const Value& value) {
  const auto found = program_.name_ids.find(name);
  if (found == program_.name_ids.end()) return;  // the template never asks for it
  if (Value* there = find_name(found->second)) {
    *there = value;
  } else {
    root_.values.emplace_back(found->second, value);
  }
}

std::string Machine::run() {
  run_body(program_.body);
  return std::move(output_);
}

Value Machine::text(std::string text) {
  room_for(text.size());
  return Value::text_of(&texts_.emplace_back(std::move(text)));
}

Value Machine::list(std::vector<Value> items, List::Form form) {
  spend(1 + items.size());
  Value v = Value::of(Kind::list);
  v.list = &lists_.emplace_back();
  v.list->items = std::move(items);
  v.list->form = form;
  return v;
}

Value Machine::dict_of(Kind kind) {
  spend(1);
  Value v = Value::of(kind);
  v.dict = &dicts_.emplace_back();
  return v;
}

Value Machine::callable(const Callable& callable) {
  spend(1);
  Value v = Value::of(Kind::callable);
  v.callable = &callables_.emplace_back(callable);
  return v;
}

void Machine::check_size(size_t bytes) const {
  if (bytes > kLargestText) {
    fail("a string of " + std::to_string(bytes) + " bytes, but the limit is " + std::to_string(kLargestText),
         "shorten the messages; a template that does this with short ones is made to do harm");
  }
}

void Machine::room_for(size_t bytes) {
  check_size(bytes);
  scan(bytes, 2);
}

void Machine::scan_case(std::string_view text) {
  const auto beyond_ascii = std::ranges::count_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  scan(text.size(), 8);
  spend(static_cast<size_t>(beyond_ascii));
}

void Machine::go_deeper() {
  spend(1);
  if (++depth_ > kDeepestEvaluation) {
    fail("evaluated more than " + std::to_string(kDeepestEvaluation) + " levels deep",
         "does a macro call itself for ever?");
  }
}

void Machine::fail(std::string_view problem, std::string_view hint) const {
  fail_at(program_.what, line_, problem, hint);
}

void Machine::fail_without_fuel() const {
  fail("still not done after " + std::to_string(kFuel) + " steps",
       "shorten the messages; a template that does this with short ones is made to do harm");
}

void Machine::fail_undefined(const Value& value) const {
  fail((value.text ? printable(*value.text) : std::string("a value")) + " is undefined",
       "the template expects it; give it, or test it with 'is defined' first");
}

void Machine::check_value_depth(int depth) const {
  if (depth > kDeepestValue) {
    fail("lists and dicts nested more than " + std::to_string(kDeepestValue) + " levels deep", "flatten them");
  }
}

Value* Machine::find_name(int name) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    spend(scope->values.size() / kPerStep);
    for (auto& [id, value] : scope->values) {
      if (id == name) return &value;
    }
  }
  return nullptr;
}

void Machine::put_out(std::string_view text) {
  if (text.size() + out_->size() > kLargestText) {
    fail("the output has more than " + std::to_string(kLargestText) + " bytes", "shorten the messages");
  }
  scan(text.size());
  *out_ += text;
}

Machine::Flow Machine::run_body(const Node::Body& body) {
  for (const Node* node : body) {
    const Flow flow = run_statement(*node);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Machine::Flow Machine::run_statement(const Node& node) {
  const Step step(*this, node.line);
  switch (node.kind) {
    case Node::Kind::data:
      put_out(*node.value.text);
      return Flow::on;
    case Node::Kind::print: {
      const Value value = evaluate(*node.parts[0]);
      value.is(Kind::text) ? put_out(*value.text) : put_out(str(value));
      return Flow::on;
    }
    case Node::Kind::branch:
      return run_branch(node);
    case Node::Kind::loop:
      return run_loop(node);
    case Node::Kind::set:
      assign(*node.parts[0], evaluate(*node.parts[1]));
      return Flow::on;
    case Node::Kind::macro: {
      bind(node.name, callable({.macro = &node, .scope = scope_}));
      return Flow::on;
    }
    case Node::Kind::set_block:
    case Node::Kind::filter_block: {
      Flow flow = Flow::on;
      Value value = text(run_aside(node.more->bodies[0], flow));
      if (flow != Flow::on) return flow;
      if (node.kind == Node::Kind::filter_block) {
        put_out(str(evaluate_filter(*node.parts[0], &value)));
      } else {
        if (node.parts[1]) value = evaluate_filter(*node.parts[1], &value);
        assign(*node.parts[0], value);
      }
      return Flow::on;
    }
    case Node::Kind::with:
    case Node::Kind::scope: {
      Scope& inner = scopes_.emplace_back(Scope{.parent = scope_, .values = {}});
      std::vector<Value> values;
      for (size_t i = 1; i < node.parts.size(); i += 2) values.push_back(evaluate(*node.parts[i]));
      Scope* outer = std::exchange(scope_, &inner);
      for (size_t i = 0; i < values.size(); ++i) assign(*node.parts[2 * i], values[i]);
      const Flow flow = run_body(node.more->bodies[0]);
      scope_ = outer;
      return flow;
    }
    case Node::Kind::stop:
      return Flow::stop;
    default:
      return Flow::next;
  }
}

Machine::Flow Machine::run_branch(const Node& node) {
  for (size_t i = 0; i < node.parts.size(); ++i) {
    if (truth(evaluate(*node.parts[i]))) return run_body(node.more->bodies[i]);
  }
  return run_body(node.more->otherwise);
}

std::string Machine::run_aside(const Node::Body& body, Flow& flow) {
  std::string aside;
  std::string* out = std::exchange(out_, &aside);
  Scope* outer = std::exchange(scope_, &scopes_.emplace_back(Scope{.parent = scope_, .values = {}}));
  flow = run_body(body);
  scope_ = outer;
  out_ = out;
  return aside;
}

void Machine::bind(int name, const Value& value) {
  spend(scope_->values.size() / kPerStep);
  for (auto& [id, old] : scope_->values) {
    if (id == name) {
      old = value;
      return;
    }
  }
  scope_->values.emplace_back(name, value);
}

void Machine::assign(const Node& target, const Value& value) {
  if (target.kind == Node::Kind::name) {
    bind(target.name, value);
  } else if (target.kind == Node::Kind::attribute) {
    const Value space = evaluate(*target.parts[0]);
    if (!space.is(Kind::space)) {
      fail(std::string("cannot set ") + printable(*target.text) + " of a " + name_of(space),
           "only a namespace() can be changed");
    }
    insert(*space.dict, Value::text_of(target.text), value);
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

bool Machine::passes(Loop& loop, const Value& value) {
  if (loop.node->parts[2] == nullptr) return true;
  Scope* outer = std::exchange(scope_, &scopes_.emplace_back(Scope{.parent = loop.outside, .values = {}}));
  assign(*loop.node->parts[0], value);
  const bool passed = truth(evaluate(*loop.node->parts[2]));
  scope_ = outer;
  return passed;
}

bool Machine::loop_peek(Loop& loop) {
  while (loop.ready.empty() && loop.at < loop.source.size()) {
    const Value value = loop.source[loop.at++];
    if (passes(loop, value)) loop.ready.push_back(value);
  }
  return !loop.ready.empty();
}

int64_t Machine::loop_length(Loop& loop) {
  while (loop.at < loop.source.size()) {
    const Value value = loop.source[loop.at++];
    if (passes(loop, value)) loop.ready.push_back(value);
  }
  return loop.index0 + 1 + static_cast<int64_t>(loop.ready.size());
}

Machine::Flow Machine::run_loop(const Node& node) {
  const Value over = evaluate(*node.parts[1]);
  Loop& loop = loops_.emplace_back();
  loop.node = &node;
  loop.outside = scope_;
  loop.source = items(over);
  Value self = Value::of(Kind::loop);
  self.loop = &loop;
  const auto named = program_.name_ids.find("loop");
  Scope& inner = scopes_.emplace_back(Scope{.parent = scope_, .values = {}});
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
    if (flow == Flow::stop) break;
  }
  if (loop.index0 < 0) return run_body(node.more->otherwise);
  return Flow::on;
}

Value Machine::call_macro(const Callable& macro, const Args& args) {
  const Node& node = *macro.macro;
  const std::string name = "macro " + printable(*node.text);
  if (macros_ >= kDeepest) {
    fail(name + " is called more than " + std::to_string(kDeepest) + " levels deep", "does it call itself for ever?");
  }
  if (args.values.size() > node.parts.size()) {
    fail(name + " takes " + std::to_string(node.parts.size()) + " arguments but gets " +
             std::to_string(args.values.size()),
         "see its definition on line " + std::to_string(node.line));
  }
  Scope& inner = scopes_.emplace_back(Scope{.parent = macro.scope, .values = {}});
  size_t used = 0;
  Scope* outer = std::exchange(scope_, &inner);
  for (size_t i = 0; i < node.parts.size(); ++i) {
    const int parameter = node.more->names[i];
    const std::string& called = *program_.names[static_cast<size_t>(parameter)];
    spend(args.named.size());
    const auto given = std::ranges::find(args.named, called, [](const auto& pair) { return pair.first; });
    Value value = Value::undefined();
    if (i < args.values.size()) {
      value = args.values[i];
    } else if (given != args.named.end()) {
      value = given->second;
      ++used;
    } else if (node.parts[i]) {
      value = evaluate(*node.parts[i]);
    }
    inner.values.emplace_back(parameter, value);
  }
  if (used != args.named.size()) {
    fail(name + " is given a named argument that it does not take, or takes twice",
         "see its definition on line " + std::to_string(node.line));
  }
  ++macros_;
  Flow flow = Flow::on;
  Value result = text(run_aside(node.more->bodies[0], flow));
  --macros_;
  scope_ = outer;
  return result;
}

}  // namespace qkv::jinja

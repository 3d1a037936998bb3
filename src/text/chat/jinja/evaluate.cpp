#include <algorithm>
#include <array>
#include <string>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/interpreter.h"

namespace qkv::jinja {

Value Interpreter::evaluate(const Node& node) {
  const Step step(*this, node.line);
  switch (node.kind) {
    case Node::Kind::constant:
      return node.value;
    case Node::Kind::name: {
      const Value* found = find_name(node.name);
      return found ? *found : Value::undefined(program_.names[static_cast<size_t>(node.name)]);
    }
    case Node::Kind::list:
    case Node::Kind::tuple:
    case Node::Kind::dict:
      return evaluate_container(node);
    case Node::Kind::attribute:
      return attribute(evaluate(*node.parts[0]), node.text);
    case Node::Kind::item:
      return evaluate_item(node);
    case Node::Kind::call:
      return evaluate_call(node);
    case Node::Kind::filter:
      return evaluate_filter(node, nullptr);
    case Node::Kind::test: {
      const Value input = evaluate(*node.parts[0]);
      if (!node.builtin) fail("there is no test " + printable(*node.text), "is it misspelt?");
      return jinja::run(*this, *node.builtin, input, arguments(node));
    }
    case Node::Kind::logical_not:
      return Value::boolean(!truth(evaluate(*node.parts[0])));
    case Node::Kind::logical_and:
    case Node::Kind::logical_or: {
      const bool stops_at = node.kind == Node::Kind::logical_or;
      Value value;
      for (const Node* part : node.parts) {
        value = evaluate(*part);
        if (truth(value) == stops_at) break;
      }
      return value;
    }
    case Node::Kind::conditional:
      if (truth(evaluate(*node.parts[0]))) return evaluate(*node.parts[1]);
      return node.parts[2] ? evaluate(*node.parts[2]) : Value::undefined();
    case Node::Kind::compare:
      return evaluate_compare(node);
    default:
      return evaluate_operator(node);
  }
}

Value Interpreter::evaluate_container(const Node& node) {
  if (node.kind != Node::Kind::dict) {
    std::vector<Value> values;
    values.reserve(node.parts.size());
    for (const Node* part : node.parts) values.push_back(evaluate(*part));
    return list(std::move(values), node.kind == Node::Kind::list ? List::Form::list : List::Form::tuple);
  }
  const Value made = dict();
  for (size_t i = 0; i < node.parts.size(); i += 2) {
    const Value key = evaluate(*node.parts[i]);
    insert(*made.dict, key, evaluate(*node.parts[i + 1]));
  }
  return made;
}

Value Interpreter::evaluate_operator(const Node& node) {
  if (node.kind == Node::Kind::concat) {
    MarkedText joined;
    for (const Node* part : node.parts) {
      joined.append(str(evaluate(*part)));
      check_size(joined.size());
    }
    return text(std::move(joined));
  }
  Value value = evaluate(*node.parts[0]);
  if (node.kind == Node::Kind::arithmetic) {
    for (size_t i = 1; i < node.parts.size(); ++i) {
      value = arithmetic(node.more->operators[i - 1], value, evaluate(*node.parts[i]));
    }
    return value;
  }
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is_numeric()) fail(std::string("a sign before a ") + name_of(value), "signs are for numbers");
  if (node.kind == Node::Kind::unary_plus && value.is(Kind::number)) return value;
  if (node.kind == Node::Kind::unary_plus) return Value::integer_of(value.as_integer());
  if (value.is(Kind::number)) return Value::number_of(-value.number);
  return arithmetic('-', Value::integer_of(0), value);
}

Value Interpreter::evaluate_compare(const Node& node) {
  Value left = evaluate(*node.parts[0]);
  for (size_t i = 1; i < node.parts.size(); ++i) {
    const Value right = evaluate(*node.parts[i]);
    if (!compare(node.more->operators[i - 1], left, right)) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

Args Interpreter::arguments(const Node& node) {
  Args args;
  for (size_t i = 1; i < node.parts.size(); ++i) args.values.push_back(evaluate(*node.parts[i]));
  if (node.more) {
    for (const auto& [name, part] : node.more->named) args.named.emplace_back(name, evaluate(*part));
    add_rest(args, *node.more);
  }
  return args;
}

// *list and **dict.
void Interpreter::add_rest(Args& args, const Node::More& more) {
  if (more.rest) {
    const Value rest = evaluate(*more.rest);
    if (rest.is(Kind::undefined)) fail_undefined(rest);
    for (const Value& value : items(rest)) args.values.push_back(value);
  }
  if (!more.rest_named) return;
  const Value named = evaluate(*more.rest_named);
  if (!named.is(Kind::dict)) {
    fail(std::string("a ") + name_of(named) + " after ** in a call", "only a dict gives named arguments");
  }
  for (const auto& [key, value] : named.dict->items) {
    if (!key.is(Kind::text)) fail(std::string("a ") + name_of(key) + " as the name of an argument", "use strings");
    const std::string_view name = key.text->bytes();
    spend(1 + args.named.size() / 8);
    if (std::ranges::find(args.named, name, [](const auto& pair) { return pair.first; }) != args.named.end()) {
      fail("the argument " + printable(name) + " is given twice", "leave it out of the dict or of the call");
    }
    if (key.text->has_marks()) args.name_mark = MarkedText::kMessage;
    args.named.emplace_back(name, value);
  }
}

Value Interpreter::evaluate_call(const Node& node) {
  const Node& what = *node.parts[0];
  if (what.kind == Node::Kind::attribute) {  // a method call, without creating a bound method
    const Value object = evaluate(*what.parts[0]);
    if (const Builtin* method = find_method(object, *what.text)) {
      return jinja::run(*this, *method, object, arguments(node));
    }
    return call(attribute(object, what.text), arguments(node));
  }
  const Value called = evaluate(what);
  return call(called, arguments(node));
}

Value Interpreter::evaluate_item(const Node& node) {
  const Value object = evaluate(*node.parts[0]);
  const Node& key = *node.parts[1];
  if (key.kind != Node::Kind::slice) return item(object, evaluate(key));
  std::array<Value, 3> bounds;
  for (size_t i = 0; i < 3; ++i) bounds[i] = key.parts[i] ? evaluate(*key.parts[i]) : Value::none();
  return slice(object, bounds);
}

Value Interpreter::evaluate_filter(const Node& node, const Value* block) {
  const Node* from = node.parts[0];
  const Value input = from == nullptr ? *block : block ? evaluate_filter(*from, block) : evaluate(*from);
  if (!node.builtin) fail("there is no filter " + printable(*node.text), "is it misspelt?");
  return jinja::run(*this, *node.builtin, input, arguments(node));
}

Value Interpreter::call(const Value& what, const Args& args) {
  if (what.is(Kind::undefined)) fail_undefined(what);
  if (what.is(Kind::loop)) return call_loop(*what.loop, args);
  if (!what.is(Kind::callable)) fail(std::string("a ") + name_of(what) + " cannot be called", "drop the brackets");
  if (what.callable->macro) return call_macro(*what.callable, args);
  return jinja::run(*this, *what.callable->builtin, what.callable->self, args);
}

}  // namespace qkv::jinja

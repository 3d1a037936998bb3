#include <algorithm>
#include <array>

#include "base/printable.h"
#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/parser.h"

namespace qkv::jinja {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 6> kComparisons{
    {{"==", '='}, {"!=", '!'}, {"<", '<'}, {"<=", 'l'}, {">", '>'}, {">=", 'g'}}};

}  // namespace

const Node* ExpressionParser::expression(Choice allowed) {
  const DepthGuard guard(depth_);
  check_depth(depth_);
  return allowed == Choice::allowed ? conditional() : logical_or();
}

const Node* ExpressionParser::conditional() {
  const int line = current().line;
  const Node* node = logical_or();
  for (int depth = depth_; skip_word("if");) {
    check_depth(++depth);
    const Node* condition = logical_or();
    const Node* otherwise = skip_word("else") ? expression() : nullptr;
    node = &make(Node::Kind::conditional, line, {condition, node, otherwise});
  }
  return node;
}

// Operators of one precedence level share a node, so that a long sum is not a deep tree.
const Node* ExpressionParser::chain(Node::Kind kind, int line, std::vector<const Node*> parts, std::string operators) {
  if (parts.size() == 1) return parts[0];
  Node& node = make(kind, line, std::move(parts));
  if (!operators.empty()) more(node).operators = std::move(operators);
  return &node;
}

const Node* ExpressionParser::logical_or() {
  const int line = current().line;
  std::vector<const Node*> parts{logical_and()};
  while (skip_word("or")) parts.push_back(logical_and());
  return chain(Node::Kind::logical_or, line, std::move(parts), "");
}

const Node* ExpressionParser::logical_and() {
  const int line = current().line;
  std::vector<const Node*> parts{logical_not()};
  while (skip_word("and")) parts.push_back(logical_not());
  return chain(Node::Kind::logical_and, line, std::move(parts), "");
}

const Node* ExpressionParser::logical_not() {
  if (!is_word("not")) return compare();
  const DepthGuard guard(depth_);
  check_depth(depth_);
  const int line = current().line;
  skip();
  return &make(Node::Kind::logical_not, line, {logical_not()});
}

const Node* ExpressionParser::compare() {
  const int line = current().line;
  std::vector<const Node*> parts{sum()};
  std::string operators;
  while (true) {
    const auto found = std::ranges::find_if(kComparisons, [&](const auto& c) { return is_symbol(c.first); });
    if (found != kComparisons.end()) {
      skip();
      operators += found->second;
    } else if (skip_word("in")) {
      operators += 'i';
    } else if (is_word("not") && peek().kind == Kind::name && peek().text == "in") {
      skip();
      skip();
      operators += 'n';
    } else {
      return chain(Node::Kind::compare, line, std::move(parts), std::move(operators));
    }
    parts.push_back(sum());
  }
}

const Node* ExpressionParser::sum() {
  const int line = current().line;
  std::vector<const Node*> parts{concat()};
  std::string operators;
  while (is_symbol("+") || is_symbol("-")) {
    operators += current().text;
    skip();
    parts.push_back(concat());
  }
  return chain(Node::Kind::arithmetic, line, std::move(parts), std::move(operators));
}

const Node* ExpressionParser::concat() {
  const int line = current().line;
  std::vector<const Node*> parts{product()};
  while (skip_symbol("~")) parts.push_back(product());
  return chain(Node::Kind::concat, line, std::move(parts), "");
}

const Node* ExpressionParser::product() {
  const int line = current().line;
  std::vector<const Node*> parts{power()};
  std::string operators;
  while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
    operators += current().text == "//" ? 'f' : current().text[0];
    skip();
    parts.push_back(power());
  }
  return chain(Node::Kind::arithmetic, line, std::move(parts), std::move(operators));
}

const Node* ExpressionParser::power() {
  const int line = current().line;
  std::vector<const Node*> parts{unary(true)};
  std::string operators;
  while (skip_symbol("**")) {
    operators += 'p';
    parts.push_back(unary(true));
  }
  return chain(Node::Kind::arithmetic, line, std::move(parts), std::move(operators));
}

const Node* ExpressionParser::unary(bool with_filters) {
  const DepthGuard guard(depth_);
  check_depth(depth_);
  const int line = current().line;
  const Node* node = nullptr;
  if (is_symbol("-") || is_symbol("+")) {
    const Node::Kind kind = is_symbol("-") ? Node::Kind::unary_minus : Node::Kind::unary_plus;
    skip();
    node = &make(kind, line, {unary(false)});
  } else {
    node = primary();
  }
  node = postfix(node);
  if (!with_filters) return node;
  for (int depth = depth_;; check_depth(++depth)) {
    if (is_symbol("|")) {
      node = filters(node);
    } else if (is_word("is")) {
      node = test(node);
    } else if (is_symbol("(")) {
      node = postfix(node);
    } else {
      return node;
    }
  }
}

const Node* ExpressionParser::primary() {
  const Token& token = current();
  Node* node = nullptr;
  if (token.kind == Kind::name) {
    const std::string& name = token.text;
    node = &make(Node::Kind::constant, token.line);
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      node->value = Value::boolean(name[0] == 't' || name[0] == 'T');
    } else if (name == "none" || name == "None") {
      node->value = Value::none();
    } else {
      node->kind = Node::Kind::name;
      node->name = program_.id_of(name);
      read_.varargs = read_.varargs || name == "varargs";
      read_.kwargs = read_.kwargs || name == "kwargs";
      read_.caller = read_.caller || name == "caller";
    }
    skip();
  } else if (token.kind == Kind::text) {
    node = &make(Node::Kind::constant, token.line);
    std::string text;
    for (; is(Kind::text); skip()) text += current().text;
    node->value = Value::text_of(program_.keep_constant(std::move(text)));
  } else if (token.kind == Kind::integer || token.kind == Kind::number) {
    node = &make(Node::Kind::constant, token.line);
    node->value = token.kind == Kind::integer ? Value::integer_of(token.integer) : Value::number_of(token.number);
    skip();
  } else if (skip_symbol("(")) {
    const Node* inner = is_symbol(")") ? &make(Node::Kind::tuple, token.line) : tuple();
    expect_symbol(")");
    return inner;
  } else if (is_symbol("[")) {
    return literal_list();
  } else if (is_symbol("{")) {
    return literal_dict();
  } else {
    unexpected("an expression");
  }
  return node;
}

bool ExpressionParser::tuple_ends(std::string_view end) const {
  return is(Kind::end_print) || is(Kind::end_block) || is_symbol(")") || (!end.empty() && is_word(end));
}

const Node* ExpressionParser::tuple(Choice choice, std::string_view end) {
  const int line = current().line;
  std::vector<const Node*> parts{expression(choice)};
  if (!is_symbol(",")) return parts[0];
  while (skip_symbol(",") && !tuple_ends(end)) parts.push_back(expression(choice));
  return &make(Node::Kind::tuple, line, std::move(parts));
}

const Node* ExpressionParser::target(std::string_view end) {
  const DepthGuard guard(depth_);
  check_depth(depth_);
  const int line = current().line;
  std::vector<const Node*> parts;
  bool is_tuple = false;
  do {
    if (tuple_ends(end)) break;
    if (skip_symbol("(")) {
      parts.push_back(target(end));
      expect_symbol(")");
    } else {
      if (!is(Kind::name)) unexpected("a name to assign to");
      const Node* name = primary();
      if (name->kind != Node::Kind::name) fail("true, false and none cannot be assigned to", "choose another name");
      if (end.empty() && skip_symbol(".")) {
        Node& attribute = make(Node::Kind::attribute, line, {name});
        attribute.text = program_.keep(expect_name("a name after '.'"));
        name = &attribute;
      }
      parts.push_back(name);
    }
    is_tuple = is_tuple || is_symbol(",");
  } while (skip_symbol(","));
  if (parts.empty()) unexpected("a name to assign to");
  return is_tuple ? &make(Node::Kind::tuple, line, std::move(parts)) : parts[0];
}

const Node* ExpressionParser::literal_list() {
  Node& node = make(Node::Kind::list, current().line);
  skip();
  while (!is_symbol("]")) {
    node.parts.push_back(expression());
    if (!skip_symbol(",") && !is_symbol("]")) unexpected("',' or ']'");
  }
  skip();
  return &node;
}

const Node* ExpressionParser::literal_dict() {
  Node& node = make(Node::Kind::dict, current().line);
  skip();
  while (!is_symbol("}")) {
    node.parts.push_back(expression());
    expect_symbol(":");
    node.parts.push_back(expression());
    if (!skip_symbol(",") && !is_symbol("}")) unexpected("',' or '}'");
  }
  skip();
  return &node;
}

const Node* ExpressionParser::postfix(const Node* node) {
  for (int depth = depth_; is_symbol(".") || is_symbol("[") || is_symbol("(");) {
    check_depth(++depth);
    if (is_symbol("(")) {
      Node& call = make(Node::Kind::call, current().line, {node});
      arguments(call);
      node = &call;
    } else {
      node = subscript(node);
    }
  }
  return node;
}

const Node* ExpressionParser::subscript(const Node* object) {
  const int line = current().line;
  if (skip_symbol(".")) {
    if (is(Kind::integer)) return &make(Node::Kind::item, line, {object, primary()});
    Node& node = make(Node::Kind::attribute, line, {object});
    node.text = program_.keep(expect_name("a name after '.'"));
    if (node.text->starts_with("__")) {
      fail("attributes like " + printable(*node.text) + " are closed to templates",
           "they lead into Python's inside; no chat template needs them");
    }
    return &node;
  }
  skip();  // [
  std::vector<const Node*> parts;
  while (!is_symbol("]")) {
    parts.push_back(subscript_part());
    if (!is_symbol("]")) expect_symbol(",");
  }
  skip();
  if (parts.empty()) fail("[] has nothing in it", "name an index or a key");
  const Node* key = parts.size() == 1 ? parts[0] : &make(Node::Kind::tuple, line, std::move(parts));
  return &make(Node::Kind::item, line, {object, key});
}

const Node* ExpressionParser::subscript_part() {
  const int line = current().line;
  std::vector<const Node*> parts(3);
  if (!is_symbol(":")) {
    parts[0] = expression();
    if (!is_symbol(":")) return parts[0];
  }
  for (size_t i = 1; i < 3 && skip_symbol(":"); ++i) {
    if (!is_symbol(":") && !is_symbol("]") && !is_symbol(",")) parts[i] = expression();
  }
  return &make(Node::Kind::slice, line, std::move(parts));
}

void ExpressionParser::arguments(Node& node) {
  expect_symbol("(");
  while (!is_symbol(")")) {
    const Node::More* so_far = node.more.get();
    if (so_far && so_far->rest_named) fail("an argument follows **", "put **dict last");
    if (skip_symbol("*")) {
      if (so_far && so_far->rest) fail("two lists of arguments", "join them: *(a + b)");
      more(node).rest = expression();
    } else if (skip_symbol("**")) {
      more(node).rest_named = expression();
    } else if (is(Kind::name) && peek().kind == Kind::symbol && peek().text == "=") {
      const std::string* name = program_.keep(current().text);
      skip();
      skip();
      more(node).named.emplace_back(*name, expression());
    } else {
      if (node.more) fail("a plain argument follows one with a name", "put the named ones last");
      node.parts.push_back(expression());
    }
    if (!skip_symbol(",") && !is_symbol(")")) unexpected("',' or ')'");
  }
  skip();
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  std::string name = expect_name(what);
  while (skip_symbol(".")) name += "." + expect_name(what);
  return name;
}

const Node* ExpressionParser::filter(const Node* input) {
  Node& node = make(Node::Kind::filter, current().line, {input});
  node.text = program_.keep(dotted_name("the name of a filter"));
  node.builtin = find_filter(*node.text);
  if (*node.text == "attr") {
    fail("the filter 'attr' is closed to templates", "write value.name or value['name']");
  }
  if (is_symbol("(")) arguments(node);
  return &node;
}

const Node* ExpressionParser::filters(const Node* input) {
  for (int depth = depth_; skip_symbol("|"); check_depth(++depth)) input = filter(input);
  return input;
}

const Node* ExpressionParser::test(const Node* input) {
  const int line = current().line;
  skip();
  const bool inverted = skip_word("not");
  Node& node = make(Node::Kind::test, line, {input});
  node.text = program_.keep(dotted_name("the name of a test"));
  node.builtin = find_test(*node.text);
  const bool word = is(Kind::name) && !is_word("else") && !is_word("or") && !is_word("and");
  if (is_symbol("(")) {
    arguments(node);
  } else if (word || is(Kind::text) || is(Kind::integer) || is(Kind::number) || is_symbol("[") || is_symbol("{")) {
    if (is_word("is")) fail("two tests in a row", "join them with 'and'");
    node.parts.push_back(postfix(primary()));
  }
  return inverted ? &make(Node::Kind::logical_not, line, {&node}) : &node;
}

}  // namespace qkv::jinja

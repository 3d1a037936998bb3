#include "text/chat/jinja/parser.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv::jinja {

bool TokenReader::skip_symbol(std::string_view mark) {
  if (!is_symbol(mark)) return false;
  skip();
  return true;
}

bool TokenReader::skip_word(std::string_view word) {
  if (!is_word(word)) return false;
  skip();
  return true;
}

void TokenReader::expect_symbol(std::string_view mark) {
  if (!skip_symbol(mark)) unexpected(printable(mark));
}

std::string TokenReader::expect_name(std::string_view what) {
  if (!is(Kind::name)) unexpected(what);
  std::string name = current().text;
  skip();
  return name;
}

void TokenReader::fail(std::string_view problem, std::string_view hint) const {
  fail_at(program_.what, current().line, problem, hint);
}

void TokenReader::unexpected(std::string_view wanted) const {
  std::string found;
  switch (current().kind) {
    case Kind::end:
      found = "the end of the template";
      break;
    case Kind::end_print:
      found = "}}";
      break;
    case Kind::end_block:
      found = "%}";
      break;
    case Kind::integer:
    case Kind::number:
      found = "a number";
      break;
    case Kind::text:
      found = "a string";
      break;
    default:
      found = printable(current().text);
  }
  fail("expected " + std::string(wanted) + " but found " + found, "see what stands before it on this line");
}

void TokenReader::check_depth(int depth) const {
  if (depth > kDeepest) {
    fail("nested more than " + std::to_string(kDeepest) + " levels deep",
         "no real template nests so deep: it is damaged or made to do harm");
  }
}

Node& TokenReader::make(Node::Kind kind, int line) {
  Node& node = program_.nodes.emplace_back();
  node.kind = kind;
  node.line = line;
  return node;
}

Node& TokenReader::make(Node::Kind kind, int line, std::vector<const Node*> parts) {
  Node& node = make(kind, line);
  node.parts = std::move(parts);
  return node;
}

Node::More& TokenReader::more(Node& node) {
  if (!node.more) node.more = std::make_unique<Node::More>();
  return *node.more;
}

namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  void run() { program_.body = body({}); }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Statements up to a tag named in `ends`, which becomes the current token; without ends, up to the end of the
  // template.
  Node::Body body(Ends ends) {
    const DepthGuard guard(depth_);
    check_depth(depth_);
    const int line = current().line;
    Node::Body out;
    while (!is(Kind::end)) {
      const int at = current().line;
      if (is(Kind::data)) {
        Node& node = make(Node::Kind::data, at);
        node.value = Value::text_of(program_.keep_constant(current().text));
        skip();
        out.push_back(&node);
      } else if (is(Kind::print)) {
        skip();
        out.push_back(&make(Node::Kind::print, at, {tuple()}));
        if (!is(Kind::end_print)) unexpected("}}");
        skip();
      } else {
        skip();
        if (is(Kind::name) && std::ranges::find(ends, current().text) != ends.end()) return out;
        out.push_back(statement());
        end_block();
      }
    }
    if (ends.size() > 0) {
      fail_at(program_.what, line, "{% " + std::string(*(ends.end() - 1)) + " %} is missing", "close every block");
    }
    return out;
  }

  Node::Body block(Ends ends) {
    skip_symbol(":");
    end_block();
    return body(ends);
  }

  Node::Body whole_block(std::string_view end) {
    Node::Body out = block({end});
    skip();
    return out;
  }

  void end_block() {
    if (!is(Kind::end_block)) unexpected("%}");
    skip();
  }

  const Node* statement() {
    const int line = current().line;
    const std::string tag = expect_name("the name of a tag");
    if (tag == "if") return branch(line);
    if (tag == "for") return loop(line);
    if (tag == "set") return set(line);
    if (tag == "macro") return macro(line);
    if (tag == "with") return with(line);
    if (tag == "filter") return filter_block(line);
    if (tag == "call") return call_block(line);
    if (tag == "print") return print(line);
    if (tag == "generation") {
      Node& node = make(Node::Kind::generation, line);
      more(node).bodies.push_back(whole_block("endgeneration"));
      return &node;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail(printable(tag) + " stands outside of a loop", "put it between for and endfor");
      return &make(tag == "break" ? Node::Kind::break_loop : Node::Kind::continue_loop, line);
    }
    for (const char* closed : {"import", "from", "include", "extends", "block", "autoescape", "do"}) {
      if (tag == closed) {
        fail_at(program_.what, line, "the tag " + printable(tag) + " is not supported",
                "a chat template must stand alone: put what it needs into it");
      }
    }
    fail_at(program_.what, line, "unknown tag " + printable(tag), "is it misspelt, or does its block end too early?");
  }

  const Node* print(int line) {
    std::vector<const Node*> parts{expression()};
    while (skip_symbol(",")) parts.push_back(expression());
    return &make(Node::Kind::print, line, {&make(Node::Kind::concat, line, std::move(parts))});
  }

  const Node* branch(int line) {
    Node& node = make(Node::Kind::branch, line);
    do {
      node.parts.push_back(tuple(Choice::no));
      more(node).bodies.push_back(block({"elif", "else", "endif"}));
    } while (skip_word("elif"));
    if (skip_word("else")) more(node).else_body = block({"endif"});
    skip();
    return &node;
  }

  const Node* loop(int line) {
    Node& node = make(Node::Kind::loop, line, {target("in"), nullptr, nullptr});
    if (!skip_word("in")) unexpected("'in'");
    node.parts[1] = tuple(Choice::no, "recursive");
    if (skip_word("if")) node.parts[2] = expression();
    node.flag = skip_word("recursive");
    ++loops_;
    more(node).bodies.push_back(block({"else", "endfor"}));
    --loops_;
    if (skip_word("else")) more(node).else_body = block({"endfor"});
    skip();
    return &node;
  }

  const Node* set(int line) {
    const Node* to = target();
    if (skip_symbol("=")) return &make(Node::Kind::set, line, {to, tuple()});
    Node& node = make(Node::Kind::set_block, line, {to, filters(nullptr)});
    more(node).bodies.push_back(whole_block("endset"));
    return &node;
  }

  const Node* macro(int line) {
    Node& node = make(Node::Kind::macro, line);
    node.name = program_.id_of(expect_name("the name of the macro"));
    node.text = program_.names[static_cast<size_t>(node.name)];
    parameters(node);
    macro_body(node, "endmacro");
    return &node;
  }

  void parameters(Node& node) {
    expect_symbol("(");
    more(node);
    while (!is_symbol(")")) {
      more(node).names.push_back(program_.id_of(expect_name("the name of a parameter")));
      const bool defaulted = !node.parts.empty() && node.parts.back() != nullptr;
      node.parts.push_back(skip_symbol("=") ? expression() : nullptr);
      if (defaulted && node.parts.back() == nullptr) {
        fail("a parameter without a default follows one with", "put parameters with defaults last");
      }
      if (!skip_symbol(",") && !is_symbol(")")) unexpected("',' or ')'");
    }
    skip();
  }

  // Notes which of varargs, kwargs and caller the body reads: a macro takes only these.
  void macro_body(Node& node, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    const SpecialNames outside = std::exchange(read_, {});
    more(node).bodies.push_back(whole_block(end));
    loops_ = loops;
    more(node).takes_rest = read_.varargs;
    more(node).takes_named = read_.kwargs;
    more(node).takes_caller = read_.caller;
    for (size_t i = 0; i < node.parts.size() && read_.caller; ++i) {
      const bool is_caller = *program_.names[static_cast<size_t>(more(node).names[i])] == "caller";
      if (is_caller && !node.parts[i]) fail("the parameter 'caller' has no default", "leave it out, or give it one");
    }
    read_ = {read_.varargs || outside.varargs, read_.kwargs || outside.kwargs, read_.caller || outside.caller};
  }

  // {% call(parameters) macro(arguments) %}: the body is a macro named caller.
  const Node* call_block(int line) {
    Node& caller = make(Node::Kind::macro, line);
    caller.flag = true;
    caller.name = program_.id_of("caller");
    caller.text = program_.names[static_cast<size_t>(caller.name)];
    more(caller);
    if (is_symbol("(")) parameters(caller);
    const Node* called = expression();
    if (called->kind != Node::Kind::call) fail("{% call %} calls no macro", "write {% call name(arguments) %}");
    Node& node = make(Node::Kind::call_block, line, {called, &caller});
    macro_body(caller, "endcall");
    return &node;
  }

  const Node* with(int line) {
    Node& node = make(Node::Kind::with, line);
    while (!is(Kind::end_block)) {
      if (!node.parts.empty()) expect_symbol(",");
      node.parts.push_back(target());
      expect_symbol("=");
      node.parts.push_back(expression());
    }
    more(node).bodies.push_back(whole_block("endwith"));
    return &node;
  }

  const Node* filter_block(int line) {
    Node& node = make(Node::Kind::filter_block, line, {filters(filter(nullptr))});
    more(node).bodies.push_back(whole_block("endfilter"));
    return &node;
  }

  int loops_ = 0;  // enclosing loops, for break and continue
};

// Converts line ends to \n and removes one at the end.
std::string prepared(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace

std::unique_ptr<const Program> parse(std::string_view source, std::string_view what) {
  QKV_CHECK(source.size() <= kLargestSource, what, ": the chat template has ", source.size(),
            " bytes but the limit is ", kLargestSource, Hint("this is probably not a chat template"));
  QKV_CHECK(is_utf8(source), what, ": the chat template is not UTF-8", Hint("save it as UTF-8"));
  auto program = std::make_unique<Program>();
  program->what = what;
  Parser(*program, tokenize(prepared(source), what)).run();
  return program;
}

}  // namespace qkv::jinja

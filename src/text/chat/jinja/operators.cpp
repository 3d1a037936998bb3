// Arithmetic and comparison with Python's semantics.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "text/chat/jinja/builtins.h"
#include "text/chat/jinja/interpreter.h"
#include "text/chat/jinja/text.h"

namespace qkv::jinja {
namespace {

// Python's // and %: round towards minus infinity. b must not be 0.
int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

double floor_modulo(double a, double b) {
  const double left = std::fmod(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

}  // namespace

Value Interpreter::arithmetic(char op, const Value& a, const Value& b) {
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (op == '%' && a.is(Kind::text)) {
    Args args;
    b.is(Kind::list)&& b.list->form == List::Form::tuple ? args.values = items(b) : args.values = {b};
    return format(a, args);
  }
  if (b.is(Kind::undefined)) fail_undefined(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.as_integer(), b.as_integer());
  if (a.is_numeric() && b.is_numeric()) return numbers(op, a.as_number(), b.as_number());
  if (op == '+' && a.is(Kind::text) && b.is(Kind::text)) {
    check_size(a.text->size() + b.text->size());
    const bool safe = a.safe || b.safe;
    MarkedText both = a.safe || !safe ? *a.text : escaped(*this, *a.text);
    both.append(b.safe || !safe ? *b.text : escaped(*this, *b.text));
    Value joined = text(std::move(both));
    joined.safe = safe;
    return joined;
  }
  if (op == '+' && a.is(Kind::list) && b.is(Kind::list) && a.list->form == b.list->form &&
      a.list->form <= List::Form::tuple) {
    spend(a.list->items.size() + b.list->items.size());
    std::vector<Value> joined = a.list->items;
    joined.insert(joined.end(), b.list->items.begin(), b.list->items.end());
    return list(std::move(joined), a.list->form);
  }
  if (op == '*' && (a.is_integral() || b.is_integral())) {
    const Value& many = a.is_integral() ? b : a;
    const int64_t times = std::max<int64_t>(0, (a.is_integral() ? a : b).as_integer());
    if (many.is(Kind::text)) return text(repeated(*this, *many.text, times));
    if (many.is(Kind::list) && many.list->form <= List::Form::tuple) {
      std::vector<Value> out;
      size_t total = 0;
      if (__builtin_mul_overflow(many.list->items.size(), static_cast<size_t>(times), &total)) total = SIZE_MAX;
      spend(total);
      for (int64_t i = 0; i < times && total > 0; ++i) {
        out.insert(out.end(), many.list->items.begin(), many.list->items.end());
      }
      return list(std::move(out), many.list->form);
    }
  }
  const std::string shown(op == 'f' ? "//" : op == 'p' ? "**" : std::string(1, op));
  fail(std::string("cannot compute ") + name_of(a) + " " + shown + " " + name_of(b),
       op == '+' ? "use ~ to join strings with other values" : "is a value of another kind than the template expects?");
}

Value Interpreter::integers(char op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case '+':
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case '-':
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case '*':
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case 'p': {
      if (b < 0) return numbers(op, static_cast<double>(a), static_cast<double>(b));
      result = 1;
      for (int64_t factor = a; b > 0 && !overflows; b /= 2) {
        if (b % 2 == 1) overflows = __builtin_mul_overflow(result, factor, &result);
        if (b > 1) overflows = __builtin_mul_overflow(factor, factor, &factor) || overflows;
      }
      break;
    }
    default:
      if (b == 0) fail("division by zero", "test the divisor first");
      if (op == '/') return Value::number_of(static_cast<double>(a) / static_cast<double>(b));
      if (b == -1) return op == '%' ? Value::integer_of(0) : integers('-', 0, a);
      result = op == '%' ? a - floor_divide(a, b) * b : floor_divide(a, b);
  }
  if (overflows) fail("a number does not fit in 64 bits", "keep numbers below 9.2e18");
  return Value::integer_of(result);
}

Value Interpreter::numbers(char op, double a, double b) {
  switch (op) {
    case '+':
      return Value::number_of(a + b);
    case '-':
      return Value::number_of(a - b);
    case '*':
      return Value::number_of(a * b);
    case 'p': {
      const double power = std::pow(a, b);
      if ((a == 0 && b < 0) || !std::isfinite(power)) fail("a power has no value", "see its two numbers");
      return Value::number_of(power);
    }
    default:
      if (b == 0) fail("division by zero", "test the divisor first");
      if (op == '/') return Value::number_of(a / b);
      return Value::number_of(op == '%' ? floor_modulo(a, b) : std::floor((a - floor_modulo(a, b)) / b));
  }
}

bool Interpreter::compare(char op, const Value& a, const Value& b) {
  switch (op) {
    case '=':
      return equal(a, b);
    case '!':
      return !equal(a, b);
    case '<':
      return less(a, b);
    case '>':
      return less(b, a);
    case 'l':
      return a.is_numeric() && b.is_numeric() ? a.as_number() <= b.as_number() : !less(b, a);
    case 'g':
      return a.is_numeric() && b.is_numeric() ? a.as_number() >= b.as_number() : !less(a, b);
    case 'i':
      return contains(b, a);
    default:
      return !contains(b, a);
  }
}

bool Interpreter::equal(const Value& a, const Value& b, int depth) {
  spend(1);
  check_value_depth(depth);
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::text:
      charge_text(std::min(a.text->size(), b.text->size()));
      return a.text->bytes() == b.text->bytes();
    case Kind::list: {
      const auto &x = a.list->items, &y = b.list->items;
      if (a.list == b.list) return true;
      if (a.list->form != b.list->form || !a.list->is_sequence() || x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i) {
        if (!equal(x[i], y[i], depth + 1)) return false;
      }
      return true;
    }
    case Kind::dict:
      if (a.dict == b.dict) return true;
      if (a.dict->items.size() != b.dict->items.size()) return false;
      for (const auto& [key, value] : a.dict->items) {
        const Value* other = lookup(*b.dict, key);
        if (other == nullptr || !equal(value, *other, depth + 1)) return false;
      }
      return true;
    case Kind::name_space:
      return a.dict == b.dict;
    case Kind::callable:
      return a.callable == b.callable;
    case Kind::loop:
      return a.loop == b.loop;
    default:
      return true;  // none and undefined
  }
}

bool Interpreter::less(const Value& a, const Value& b, int depth) {
  spend(1);
  check_value_depth(depth);
  if (a.is_integral() && b.is_integral()) return a.as_integer() < b.as_integer();
  if (a.is_numeric() && b.is_numeric()) return a.as_number() < b.as_number();
  if (a.is(Kind::text) && b.is(Kind::text)) {
    charge_text(std::min(a.text->size(), b.text->size()));
    return a.text->bytes() < b.text->bytes();
  }
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (b.is(Kind::undefined)) fail_undefined(b);
  if (a.is(Kind::list) && b.is(Kind::list) && a.list->form == b.list->form && a.list->form <= List::Form::tuple) {
    const auto &x = a.list->items, &y = b.list->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], depth + 1)) return less(x[i], y[i], depth + 1);
    }
    return x.size() < y.size();
  }
  fail(std::string("cannot say which of ") + name_of(a) + " and " + name_of(b) + " is less",
       "compare values of one kind");
}

bool Interpreter::contains(const Value& in, const Value& what) {
  if (in.is(Kind::text)) {
    if (what.is(Kind::text)) return find(in.text->bytes(), what.text->bytes()) != std::string::npos;
    if (what.is(Kind::undefined)) fail_undefined(what);
    fail(std::string("a ") + name_of(what) + " cannot be in a string", "only a string can");
  }
  if (in.is(Kind::dict)) {
    check_key(what);
    return lookup(*in.dict, what) != nullptr;
  }
  for (const Value& value : items(in)) {
    if (equal(value, what)) return true;
  }
  return false;
}

size_t Interpreter::find(std::string_view in, std::string_view what, size_t from) {
  const std::string_view rest = in.substr(from);
  // Linear in both texts, unlike std::string::find.
  const void* found = memmem(rest.data(), rest.size(), what.data(), what.size());
  const size_t at = found ? static_cast<size_t>(static_cast<const char*>(found) - in.data()) : in.npos;
  charge_text(std::min(at, in.size()) - from + what.size(), 4);
  return at;
}

}  // namespace qkv::jinja

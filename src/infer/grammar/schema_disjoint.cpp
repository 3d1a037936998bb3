// Whether two schemas have no value in common, as far as that can be told.
#include <algorithm>

#include "infer/grammar/schema_compiler.h"

namespace qkv::grammar {
namespace {

constexpr int kDeepestLook = 6;

bool apart(const Numbers& a, const Numbers& b) {
  const auto below = [](const std::optional<Bound>& most, const std::optional<Bound>& least) {
    return most && least && (most->at < least->at || (most->at == least->at && (most->exclusive || least->exclusive)));
  };
  return below(a.most, b.least) || below(b.most, a.least);
}

}  // namespace

bool SchemaCompiler::disjoint(const Together& a, const Together& b, int depth) const {
  if (a.never || b.never) return true;
  if (depth > kDeepestLook) return false;
  if (b.choices.empty() && a.choices.empty()) {
    return disjoint_values(facts_of(a.parts, budget_), facts_of(b.parts, budget_), depth);
  }
  if (disjoint_parts(a, b, depth)) return true;
  const Together &choice = a.choices.empty() ? b : a, &other = a.choices.empty() ? a : b;
  for (size_t n = 0; n < choice.choices.back().json->size(); ++n) {
    if (!disjoint(parts_.branch(choice, n), other, depth + 1)) return false;
  }
  return true;
}

// Whether what holds beside the choices excludes a common value already: no branch can add one. Types that the other
// keywords tell count only if `type` does not say others, which a branch may.
bool SchemaCompiler::disjoint_parts(const Together& a, const Together& b, int depth) const {
  Facts of_a = facts_of(a.parts, budget_), of_b = facts_of(b.parts, budget_);
  of_a.types = of_a.satisfying;
  of_b.types = of_b.satisfying;
  return disjoint_values(of_a, of_b, depth);
}

bool SchemaCompiler::disjoint_values(const Facts& a, const Facts& b, int depth) const {
  if (a.values && b.values) {
    budget_.spend(a.values->size() * b.values->size());
    return std::none_of(a.values->begin(), a.values->end(), [&](const OrderedJson& value) {
      return std::find(b.values->begin(), b.values->end(), value) != b.values->end();
    });
  }
  if (a.values || b.values) {
    const Facts &listed = a.values ? a : b, &other = a.values ? b : a;
    return std::all_of(listed.values->begin(), listed.values->end(), [&](const OrderedJson& value) {
      budget_.spend(value.is_string() ? 1 + value.get_ref<const std::string&>().size() : 1);
      if (value.is_string() && (other.satisfying & kString) != 0)
        return !contents(other).accepts(value.get<std::string>());
      uint8_t type = kObject;
      if (value.is_null()) type = kNull;
      if (value.is_boolean()) type = kBoolean;
      if (value.is_number()) type = kNumber | kInteger;
      if (value.is_string()) type = kString;
      if (value.is_array()) type = kArray;
      return (type & other.satisfying) == 0;
    });
  }
  // What is written for one must not satisfy the other.
  const auto common = static_cast<uint8_t>((a.types & b.satisfying) | (b.types & a.satisfying));
  if ((common & (kNull | kBoolean | kArray)) != 0) return false;
  if ((common & (kInteger | kNumber)) != 0 && !apart(a.numbers, b.numbers)) return false;
  if ((common & kString) != 0 && !intersection(contents(a), contents(b), budget_).empty()) return false;
  return (common & kObject) == 0 || disjoint_objects(a, b, depth);
}

// Some property that one must have differs from what the other says of it, or the other may not have it.
bool SchemaCompiler::disjoint_objects(const Facts& a, const Facts& b, int depth) const {
  const auto find = [](const Facts& facts, const std::string& name) {
    return std::find_if(facts.named.begin(), facts.named.end(), [&](const PropertyFacts& p) { return p.name == name; });
  };
  const auto forbidden = [&](const Facts& has, const Facts& other) {
    return std::any_of(has.named.begin(), has.named.end(), [&](const PropertyFacts& p) {
      return p.required && other.closed && find(other, p.name) == other.named.end();
    });
  };
  budget_.spend(a.named.size() * b.named.size());
  if (forbidden(a, b) || forbidden(b, a)) return true;
  return std::any_of(a.named.begin(), a.named.end(), [&](const PropertyFacts& p) {
    const auto other = find(b, p.name);
    return other != b.named.end() && (p.required || other->required) &&
           disjoint(parts_.together(p.value), parts_.together(other->value), depth + 1);
  });
}

}  // namespace qkv::grammar

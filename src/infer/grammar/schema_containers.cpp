// Rules of objects and arrays.
#include <algorithm>

#include "base/error.h"
#include "infer/grammar/schema_compiler.h"

namespace qkv::grammar {

// States of an object are numbered by the next property of the schema that may come, and by how many there are so far
// (as far as counts matter).
class ObjectRule {
 public:
  ObjectRule(SchemaCompiler& compiler, int32_t rule, const Facts& facts)
      : c_(compiler), b_(compiler.builder_), rule_(rule), facts_(facts), counts_(facts.properties) {
    last_count_ = counts_.most.value_or(counts_.least);
    end_ = b_.add_state(rule);
    b_.accept(end_);
    std::vector<std::string> names;
    for (const PropertyFacts& property : facts.named) {
      names.push_back(json_string(property.name).substr(1));
      values_.push_back(c_.rule_of(property.value));
    }
    b_.name_properties(rule, std::move(names));
    if (facts.other_properties) other_value_ = c_.rule_of(*facts.other_properties);
    c_.call_gap(b_.text(b_.start_of(rule), "{"), before({0, 0, true}));
  }

 private:
  struct Place {
    size_t next = 0, count = 0;
    bool first = false;  // no property is written yet
    auto operator<=>(const Place&) const = default;
  };
  bool may_grow(const Place& at) const { return !counts_.most || at.count < *counts_.most; }
  Place behind(const Place& at, size_t next) const { return {next, std::min(at.count + 1, last_count_), false}; }

  // Before a property's name.
  int32_t before(const Place& at) {
    const auto [known, is_new] = before_.try_emplace(at, -1);
    if (!is_new) return known->second;
    const int32_t state = b_.add_state(rule_);
    known->second = state;
    if (at.next == facts_.named.size()) {
      if (at.first && at.count >= counts_.least) b_.edge(state, '}', end_);
      if (other_value_ >= 0 && may_grow(at)) {
        const int32_t name = b_.add_state(rule_);
        b_.call(b_.text(state, "\""), {.rule = c_.key_rule(), .back = name});
        value(name, other_value_, behind(at, at.next));
      }
      return state;
    }
    const PropertyFacts& property = facts_.named[at.next];
    if (may_grow(at)) value(b_.text(state, json_string(property.name)), values_[at.next], behind(at, at.next + 1));
    if (!property.required) b_.also(state, before({at.next + 1, at.count, at.first}));
    return state;
  }

  // Behind a property's name.
  void value(int32_t name, int32_t rule, const Place& next) {
    const int32_t colon = b_.text(name, ":"), value = b_.text(colon, " ");
    b_.also(colon, value);
    b_.call(value, {.rule = rule, .back = after(next)});
  }

  // Behind a property's value.
  int32_t after(const Place& at) {
    const auto [known, is_new] = after_.try_emplace(at, -1);
    if (!is_new) return known->second;
    const int32_t state = b_.add_state(rule_);
    known->second = state;
    const auto rest = facts_.named.begin() + static_cast<std::ptrdiff_t>(at.next);
    const bool all = std::none_of(rest, facts_.named.end(), [](const PropertyFacts& p) { return p.required; });
    if (all && at.count >= counts_.least) {
      const int32_t close = b_.add_state(rule_);
      c_.call_gap(state, close);
      b_.edge(close, '}', end_);
    }
    c_.call_gap(b_.text(state, ","), before(at));
    return state;
  }

  SchemaCompiler& c_;
  GrammarBuilder& b_;
  int32_t rule_;
  const Facts& facts_;
  const Counts& counts_;
  size_t last_count_ = 0;
  int32_t end_ = -1, other_value_ = -1;
  std::vector<int32_t> values_;
  std::map<Place, int32_t> before_, after_;
};

void SchemaCompiler::fill_object(int32_t rule, const Facts& facts) {
  ObjectRule(*this, rule, facts);
}

std::vector<OrderedJson> SchemaCompiler::item_values(const Facts& facts) const {
  constexpr size_t kMostUnique = 30;  // one bit each
  const auto wrong = [&](const std::string& what) {
    fail_keyword(facts.unique_at, "uniqueItems", what, "give the items an enum of at most 30 values, or leave it out");
  };
  if (!facts.first_items.empty() || !facts.other_items || facts.other_items->empty())
    wrong("is supported only with an enum as items");
  const Together items = parts_.together(*facts.other_items);
  if (!items.choices.empty() || items.never) wrong("is supported only with an enum as items");
  std::optional<std::vector<OrderedJson>> values = facts_of(items.parts, budget_).values;
  if (!values) wrong("is supported only with an enum as items");
  std::vector<OrderedJson> different;
  for (const OrderedJson& value : *values) {
    budget_.spend(1 + different.size());
    if (std::find(different.begin(), different.end(), value) == different.end()) different.push_back(value);
  }
  if (different.size() > kMostUnique) wrong("has items with " + std::to_string(different.size()) + " values");
  return different;
}

void SchemaCompiler::fill_array(int32_t rule, const Facts& facts) {
  Counts counts = facts.items;
  const size_t first = facts.first_items.size();
  if (!facts.other_items) counts.most = std::min(counts.most.value_or(first), first);
  std::vector<int32_t> unique;  // a rule for each value
  if (facts.unique && counts.most.value_or(2) > 1) {
    for (const OrderedJson& value : item_values(facts)) unique.push_back(values_rule({value}));
    counts.most = std::min(counts.most.value_or(unique.size()), unique.size());
  }
  std::vector<int32_t> rules;
  for (const std::vector<SchemaPart>& item : facts.first_items) rules.push_back(rule_of(item));
  if (facts.other_items && unique.empty()) rules.push_back(rule_of(*facts.other_items));

  const int32_t end = builder_.add_state(rule), open = builder_.text(builder_.start_of(rule), "[");
  builder_.accept(end);
  // before[n]: before item n, n being also how many there are; the last ones repeat.
  const size_t last = counts.most ? *counts.most : std::max(counts.least, first);
  std::vector<int32_t> before(last + 1), after(last + 1);
  for (int32_t& state : before) state = builder_.add_state(rule);
  for (int32_t& state : after) state = builder_.add_state(rule);
  for (size_t n = 0; n <= last; ++n) {
    const bool more = !counts.most || n < *counts.most;
    const int32_t behind = after[std::min(n + 1, last)];
    for (size_t i = 0; more && i < unique.size(); ++i) {
      builder_.call(before[n], {.rule = unique[i], .back = behind, .item = static_cast<int32_t>(i)});
    }
    if (more && unique.empty())
      builder_.call(before[n], {.rule = rules[std::min(n, rules.size() - 1)], .back = behind});
    if (more) call_gap(builder_.text(after[n], ","), before[n]);
    if (n < counts.least) continue;
    const int32_t close = builder_.add_state(rule);
    call_gap(after[n], close);
    builder_.edge(close, ']', end);
  }
  const int32_t begin = builder_.add_state(rule);
  call_gap(open, begin);
  builder_.also(begin, before[0]);
  if (counts.least == 0) builder_.edge(begin, ']', end);
}

}  // namespace qkv::grammar

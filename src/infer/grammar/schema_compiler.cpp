#include "infer/grammar/schema_compiler.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace qkv::grammar {
namespace {

constexpr size_t kMostRules = 10'000;
constexpr int kDeepestSchema = 300;
constexpr int kWidestIndent = 32;

std::string string_description(const Facts& facts) {
  const std::optional<size_t>& most = facts.lengths.most;
  std::string description =
      "string " + std::to_string(facts.lengths.least) + " " + (most ? std::to_string(*most) : "-");
  for (const auto& [pattern, at] : facts.patterns) description += "\n" + pattern;
  return description;
}

}  // namespace

GrammarPtr SchemaCompiler::compile() {
  // The first token of a text often begins with a space.
  const int32_t text = builder_.add_rule(), start = builder_.start_of(text);
  const int32_t value = builder_.add_state(text), end = builder_.add_state(text);
  builder_.also(start, value);
  builder_.edge(start, ' ', value);
  builder_.call(value, {.rule = rule_of({parts_.root()}), .back = end});
  builder_.accept(end);
  return builder_.build();
}

int32_t SchemaCompiler::rule_of(const Together& all) {
  const std::string key = all.key();
  budget_.spend(all.copy_steps() + 2 * key.size());
  if (const auto known = rules_.find(key); known != rules_.end()) return known->second;
  QKV_CHECK(rules_.size() < kMostRules, "the schema has more than ", kMostRules, " different values",
            Hint("make it smaller, or put what repeats into $defs"));
  const bool choice = !all.choices.empty();
  const Facts facts = choice || all.never ? Facts{} : facts_of(all.parts, budget_);
  // A value of one type is its own rule; nesting is counted by it.
  Rule::Kind kind = Rule::Kind::plain;
  if (!choice && !all.never && !facts.values && facts.types == kObject) kind = Rule::Kind::object;
  if (!choice && !all.never && !facts.values && facts.types == kArray) kind = Rule::Kind::array;
  const int32_t rule = builder_.add_rule(kind);
  rules_.emplace(key, rule);
  if (all.never) return rule;  // without an end
  QKV_CHECK(++depth_ <= kDeepestSchema, "schemas lie inside one another more than ", kDeepestSchema, " deep",
            Hint("make the schema flatter"));
  if (choice) {
    fill_choice(rule, all);
  } else {
    fill_value(rule, facts);
  }
  --depth_;
  return rule;
}

void SchemaCompiler::fill_choice(int32_t rule, const Together& all) {
  const SchemaPart& choice = all.choices.back();
  std::vector<Together> branches;
  for (size_t n = 0; n < choice.json->size(); ++n) branches.push_back(parts_.branch(all, n));
  if (choice.at.ends_with("/oneOf")) {
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t j = i + 1; j < branches.size(); ++j) {
        QKV_CHECK(disjoint(branches[i], branches[j], 0), "the schema's keyword oneOf at ", choice.at,
                  ": a value may satisfy both ", choice.at, "/", i, " and ", choice.at, "/", j,
                  Hint("use anyOf, or give them a required property with different const values"));
      }
    }
  }
  std::vector<int32_t> rules;
  for (const Together& branch : branches) rules.push_back(rule_of(branch));
  call_any(rule, rules);
}

void SchemaCompiler::call_any(int32_t rule, const std::vector<int32_t>& others) {
  const int32_t end = builder_.add_state(rule);
  builder_.accept(end);
  for (const int32_t other : others) builder_.call(builder_.start_of(rule), {.rule = other, .back = end});
}

void SchemaCompiler::fill_value(int32_t rule, const Facts& facts) {
  if (facts.values) return call_any(rule, {values_rule(*facts.values)});
  if (facts.types == kObject) return fill_object(rule, facts);
  if (facts.types == kArray) return fill_array(rule, facts);
  std::vector<int32_t> rules;
  for (const SchemaType type : {kNull, kBoolean, kInteger, kString}) {
    if ((facts.types & type) != 0) rules.push_back(scalar_rule(facts, type));
  }
  if ((facts.types & kArray) != 0) {
    rules.push_back(builder_.add_rule(Rule::Kind::array));
    fill_array(rules.back(), facts);
  }
  if ((facts.types & kObject) != 0) {
    rules.push_back(builder_.add_rule(Rule::Kind::object));
    fill_object(rules.back(), facts);
  }
  call_any(rule, rules);
}

template <class MakeDfa>
int32_t SchemaCompiler::text_rule(const std::string& description, MakeDfa make) {
  const auto [known, is_new] = text_rules_.try_emplace(description, -1);
  if (is_new) {
    known->second = builder_.add_rule();
    builder_.fill(known->second, make());
  }
  return known->second;
}

const Dfa& SchemaCompiler::contents(const Facts& facts) const {
  const auto [known, is_new] = contents_.try_emplace(string_description(facts));
  if (is_new) known->second = contents_of(facts, budget_);
  return known->second;
}

int32_t SchemaCompiler::scalar_rule(const Facts& facts, SchemaType type) {
  if (type == kNull) return text_rule("null", [&] { return one_of({"null"}, budget_); });
  if (type == kBoolean) return text_rule("boolean", [&] { return one_of({"false", "true"}, budget_); });
  if (type == kString) {
    return text_rule(string_description(facts), [&] { return json_strings(contents(facts), budget_); });
  }
  const Numbers& n = facts.numbers;
  const auto bound = [](const std::optional<Bound>& b) {
    return b ? OrderedJson(b->at).dump() + (b->exclusive ? "x " : " ") : std::string("- ");
  };
  return text_rule("number " + bound(n.least) + bound(n.most) + std::to_string(n.multiple_of) + (n.integer ? "i" : ""),
                   [&] { return json_numbers(n, budget_); });
}

int32_t SchemaCompiler::values_rule(const std::vector<OrderedJson>& values) {
  constexpr size_t kMostBytes = 100'000;
  std::vector<std::string> texts;
  std::string description = "values";
  for (const OrderedJson& value : values) {
    texts.push_back(value.dump());
    budget_.spend(8 + texts.back().size());
    description += "\n" + texts.back();
  }
  QKV_CHECK(description.size() <= kMostBytes, "the values of an enum have ", description.size(),
            " bytes together but may have ", kMostBytes, Hint("shorten them"));
  return text_rule(description, [&] { return one_of(texts, budget_); });
}

int32_t SchemaCompiler::key_rule() {
  if (key_rule_ < 0) {
    key_rule_ = builder_.add_rule(Rule::Kind::key);
    builder_.fill(key_rule_, json_string_ends(string_contents({}, budget_), budget_));
  }
  return key_rule_;
}

int32_t SchemaCompiler::gap_rule() {
  if (gap_rule_ < 0) {
    gap_rule_ = builder_.add_rule();
    const int32_t start = builder_.start_of(gap_rule_), space = builder_.add_state(gap_rule_);
    int32_t line = builder_.add_state(gap_rule_);
    builder_.edge(start, ' ', space);
    builder_.edge(start, '\n', line);
    for (const int32_t state : {start, space, line}) builder_.accept(state);
    for (int i = 0; i < kWidestIndent; ++i) builder_.accept(line = builder_.text(line, " "));
  }
  return gap_rule_;
}

}  // namespace qkv::grammar

// Makes the rules of a grammar from schemas.
#pragma once

#include <map>

#include "infer/grammar/grammar.h"
#include "infer/grammar/schema_facts.h"

namespace qkv::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(const OrderedJson& root, Budget& budget) : budget_(budget), parts_(root, budget), builder_(budget) {}
  GrammarPtr compile();

 private:
  int32_t rule_of(const std::vector<SchemaPart>& parts) { return rule_of(parts_.together(parts)); }
  int32_t rule_of(const Together& all);
  void fill_choice(int32_t rule, const Together& all);
  void fill_value(int32_t rule, const Facts& facts);
  void fill_object(int32_t rule, const Facts& facts);
  void fill_array(int32_t rule, const Facts& facts);

  // Rules of a regular language, one for each description.
  template <class MakeDfa>
  int32_t text_rule(const std::string& description, MakeDfa make);
  const Dfa& contents(const Facts& facts) const;  // contents_of, made once
  int32_t scalar_rule(const Facts& facts, SchemaType type);
  int32_t values_rule(const std::vector<OrderedJson>& values);
  int32_t key_rule();
  int32_t gap_rule();  // white space between parts: nothing, a space, or a line break and its indentation

  void call_gap(int32_t from, int32_t back) { builder_.call(from, {.rule = gap_rule(), .back = back}); }
  void call_any(int32_t rule, const std::vector<int32_t>& others);

  // The values of an array without duplicates.
  std::vector<OrderedJson> item_values(const Facts& facts) const;

  // Whether no value satisfies both. False where that is not clear.
  bool disjoint(const Together& a, const Together& b, int depth) const;
  bool disjoint_parts(const Together& a, const Together& b, int depth) const;
  bool disjoint_values(const Facts& a, const Facts& b, int depth) const;
  bool disjoint_objects(const Facts& a, const Facts& b, int depth) const;

  friend class ObjectRule;
  Budget& budget_;
  SchemaParts parts_;
  GrammarBuilder builder_;
  std::map<std::string, int32_t> rules_, text_rules_;
  mutable std::map<std::string, Dfa> contents_;
  int32_t key_rule_ = -1, gap_rule_ = -1;
  int depth_ = 0;  // of rule_of
};

}  // namespace qkv::grammar

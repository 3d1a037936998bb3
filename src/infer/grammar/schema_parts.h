// A JSON Schema taken apart: which schemas hold for a value at the same time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "infer/grammar/budget.h"
#include "text/chat/ordered_json.h"

namespace qkv::grammar {

// A schema and its place, a JSON pointer.
struct SchemaPart {
  const OrderedJson* json = nullptr;
  std::string at;
};

// All that hold for a value. $ref and allOf are followed already, so only the keywords of each part itself count;
// of each choice (the value of an anyOf or oneOf) one branch must hold too.
struct Together {
  std::vector<SchemaPart> parts, choices;
  std::vector<std::string> chosen;  // places of choices that a branch has replaced
  bool never = false;               // the schema false is among them

  std::string key() const;    // the same for the same schemas
  size_t copy_steps() const;  // work and memory of a copy
};

class SchemaParts {
 public:
  SchemaParts(const OrderedJson& root, Budget& budget) : root_(root), budget_(budget) {}

  // All of these. Unknown keywords and references that lead nowhere are Errors.
  Together together(const std::vector<SchemaPart>& all) const;
  // The last choice replaced by its branch `n`.
  Together branch(const Together& all, size_t n) const;
  SchemaPart root() const { return {&root_, "#"}; }

 private:
  void add(const SchemaPart& part, Together& out, std::vector<std::string>& path) const;
  SchemaPart resolved(const std::string& reference, const std::string& at) const;

  const OrderedJson& root_;
  Budget& budget_;
};

// Errors about a keyword say where it stands.
[[noreturn]] void fail_keyword(const std::string& at, std::string_view keyword, const std::string& what,
                               std::string_view hint);
std::string pointer(const std::string& at, std::string_view key);  // at/key, escaped

}  // namespace qkv::grammar

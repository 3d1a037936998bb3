// JSON Schema (2020-12) as a grammar: every text of the grammar is JSON that satisfies the schema.
//
// Nothing is left aside: a keyword that is not supported is an Error that names it and its place. The grammar may be
// narrower than the schema; docs/structured-output.md says where.
#pragma once

#include <string_view>

#include "infer/grammar/budget.h"
#include "infer/grammar/grammar.h"
#include "text/chat/ordered_json.h"

namespace qkv::grammar {

constexpr size_t kLargestSchema = size_t{1} << 20;  // bytes
constexpr size_t kMaxSchemaSteps = 40'000'000;      // of one compilation

GrammarPtr schema_grammar(const OrderedJson& schema, Budget& budget);
// The same from a text, with a budget of its own; `what` names it in errors.
GrammarPtr schema_grammar(std::string_view text, std::string_view what);

// response_format of OpenAI's API: {"type": "json_object"}, or {"type": "json_schema", "json_schema": {"name": ...,
// "schema": {...}, "strict": ...}}, which is always held to strictly. Null for {"type": "text"}.
GrammarPtr response_grammar(const OrderedJson& response_format, Budget& budget);

}  // namespace qkv::grammar

// Calls that have to be made: the grammar of an answer that is one call of these functions, with arguments that satisfy
// the schema of the function.
#pragma once

#include <string>

#include "infer/grammar/budget.h"
#include "infer/grammar/grammar.h"
#include "server/answers/tool_calls.h"

namespace qkv::server {

// `tools`: OpenAI's list. `name`: of the one to call; empty: any of them. What follows forced_beginning() is held to
// it. An Error if the schema of a strict function has a keyword that is not supported; the arguments of one that is not
// strict are then any object. The budget is that of all of them together.
grammar::GrammarPtr call_grammar(ToolStyle style, const OrderedJson& tools, const std::string& name, Budget& budget);

}  // namespace qkv::server

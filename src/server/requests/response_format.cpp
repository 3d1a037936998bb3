#include "server/requests/response_format.h"

#include "base/error.h"
#include "infer/grammar/json_schema.h"

namespace qkv::server {
namespace {

// OpenAI's /v1/responses has name, schema and strict beside the type, the chat in an object of their own.
OrderedJson as_chat_format(const OrderedJson& format) {
  if (format.value("type", "") != "json_schema" || format.contains("json_schema")) return format;
  OrderedJson inner = format;
  inner.erase("type");
  return {{"type", "json_schema"}, {"json_schema", inner}};
}

}  // namespace

std::shared_ptr<const grammar::TokenMasks> masks_of(const std::function<grammar::GrammarPtr()>& make,
                                                    const std::string& field, const ServedModel& model) {
  try {
    const grammar::GrammarPtr grammar = make();
    return grammar ? std::make_shared<const grammar::TokenMasks>(grammar, model.token_trie()) : nullptr;
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::input) throw;
    throw ApiError(400, error.message() + (error.hint().empty() ? "" : ": " + error.hint()), field);
  }
}

std::shared_ptr<const grammar::TokenMasks> constraint_of(const Fields& format, const std::string& field,
                                                         const ServedModel& model, Budget& budget) {
  const std::optional<std::string> type = format.word("type", {"text", "json_object", "json_schema"});
  if (!type) format.fail("type", "is missing: it must be text, json_object or json_schema");
  return masks_of([&] { return grammar::response_grammar(as_chat_format(format.json()), budget); }, field, model);
}

}  // namespace qkv::server

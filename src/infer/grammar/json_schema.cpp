#include "infer/grammar/json_schema.h"

#include <algorithm>

#include "base/error.h"
#include "infer/grammar/schema_compiler.h"

namespace qkv::grammar {

GrammarPtr schema_grammar(const OrderedJson& schema, Budget& budget) {
  return SchemaCompiler(schema, budget).compile();
}

GrammarPtr schema_grammar(std::string_view text, std::string_view what) {
  Budget budget(kMaxSchemaSteps);
  return schema_grammar(parse_ordered_json(text, what, {.bytes = kLargestSchema}), budget);
}

GrammarPtr response_grammar(const OrderedJson& format, Budget& budget) {
  QKV_CHECK(format.is_object() && format.contains("type") && format["type"].is_string(),
            "response_format is not an object with a type", Hint("write {\"type\": \"json_object\"}"));
  const std::string type = format["type"];
  const auto only = [&](const OrderedJson& object, const char* what, std::initializer_list<std::string_view> known) {
    for (const auto& member : object.items()) {
      QKV_CHECK(std::find(known.begin(), known.end(), member.key()) != known.end(), what, " has the member ",
                member.key(), ", which is not known", Hint("leave it out"));
    }
  };
  if (type == "json_schema") {
    only(format, "response_format", {"type", "json_schema"});
    const auto inside = format.find("json_schema");
    QKV_CHECK(inside != format.end() && inside->is_object() && inside->contains("schema"),
              "response_format has no json_schema with a schema",
              Hint(R"(write {"type": "json_schema", "json_schema": {"name": "answer", "schema": {...}}})"));
    only(*inside, "response_format.json_schema", {"name", "description", "schema", "strict"});
    return schema_grammar((*inside)["schema"], budget);
  }
  only(format, "response_format", {"type"});
  if (type == "json_object") return schema_grammar(OrderedJson{{"type", "object"}}, budget);
  QKV_CHECK(type == "text", "response_format has the type ", type, Hint("text, json_object or json_schema"));
  return nullptr;
}

}  // namespace qkv::grammar

#include "server/requests/tool_grammar.h"

#include <fmt/format.h>

#include "base/error.h"
#include "infer/grammar/json_schema.h"

namespace qkv::server {
namespace {

// References of a schema that becomes a part of another document, at this pointer. Its depth is that of a request.
void move_references(OrderedJson& schema, const std::string& to) {
  if (schema.is_array()) {
    for (OrderedJson& one : schema) move_references(one, to);
  }
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string() && value.get_ref<const std::string&>().starts_with('#')) {
      value = to + value.get_ref<const std::string&>().substr(1);
    } else if ((key == "properties" || key == "$defs" || key == "definitions") && value.is_object()) {
      for (const auto& [name, inner] : value.items()) move_references(inner, to);  // names are not keywords
    } else if (key != "const" && key != "enum" && key != "default" && key != "examples") {
      move_references(value, to);
    }
  }
}

// What its arguments are held to.
OrderedJson schema_of(const OrderedJson& function, Budget& budget) {
  const auto found = function.find("parameters"), strict = function.find("strict");
  if (found == function.end() || found->is_null()) {  // it takes none
    return {{"type", "object"}, {"properties", OrderedJson::object()}, {"additionalProperties", false}};
  }
  try {
    grammar::schema_grammar(*found, budget);
    return found->empty() ? OrderedJson{{"type", "object"}} : *found;
  } catch (const OutOfBudget&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::input) throw;
    if (strict == function.end() || *strict != true) return {{"type", "object"}};
    QKV_FAIL("the parameters of ", function.at("name").get<std::string>(), ": ", error.message(), Hint(error.hint()));
  }
}

}  // namespace

grammar::GrammarPtr call_grammar(ToolStyle style, const OrderedJson& tools, const std::string& name, Budget& budget) {
  const char* arguments = style == ToolStyle::llama3 ? "parameters" : "arguments";
  OrderedJson definitions = OrderedJson::object(), calls = OrderedJson::array();
  for (const OrderedJson& tool : tools) {
    const OrderedJson& function = tool.at("function");
    if (!name.empty() && function.at("name") != name) continue;
    OrderedJson schema = schema_of(function, budget);
    const std::string key = fmt::format("f{}", definitions.size()), at = "#/$defs/" + key;
    move_references(schema, at);
    definitions[key] = std::move(schema);
    OrderedJson properties{{"name", {{"const", function.at("name")}}}};
    properties[arguments] = {{"$ref", at}};
    calls.push_back({{"type", "object"},
                     {"properties", std::move(properties)},
                     {"required", {"name", arguments}},
                     {"additionalProperties", false}});
  }
  OrderedJson whole{{"$defs", std::move(definitions)}};
  const OrderedJson call = calls.size() == 1 ? calls.front() : OrderedJson{{"anyOf", calls}};
  if (style == ToolStyle::mistral) {
    whole.update({{"type", "array"}, {"items", call}, {"minItems", 1}, {"maxItems", 1}});
  } else {
    whole.update(call);
  }
  return grammar::schema_grammar(whole, budget);
}

}  // namespace qkv::server

#include "server/response_format.h"

namespace qkv::server {

std::function<std::shared_ptr<TokenFilter>()> filter_maker(const Fields& format, const ServedModel&) {
  const std::optional<std::string> type = format.word("type", {"text", "json_object", "json_schema"});
  if (!type) format.fail("type", "is missing: it must be text, json_object or json_schema");
  if (*type == "text") return {};
  format.fail("type", "is " + *type + ", which this server cannot hold a text to");
}

}  // namespace qkv::server

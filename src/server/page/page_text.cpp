// What a request of the page wants to be looked at.
#include <algorithm>

#include "base/error.h"
#include "server/page/page_routes.h"
#include "text/unicode/utf8.h"

namespace qkv::server {
namespace {

constexpr size_t kLongestPageText = size_t{256} << 10;
constexpr int64_t kMostPageTokens = 32768;  // of a model that names no context
constexpr size_t kMostCuts = 4096, kLongestHeadName = 32;

std::string utf8_field(const Fields& fields, std::string_view name, Fields::Sizes bytes) {
  std::string text = fields.text(name, bytes).value_or("");
  if (!is_utf8(text)) fields.fail(name, "is not valid UTF-8");
  return text;
}

std::vector<int32_t> ids_field(const Fields& fields, const ModelSpec& spec) {
  std::vector<int32_t> ids;
  const OrderedJson* list = fields.list("ids", {1, static_cast<size_t>(kMostPageTokens)});
  if (list == nullptr) return ids;
  for (const OrderedJson& id : *list) {
    const bool known = id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < spec.vocabulary;
    if (!known) fields.fail("ids", "must be numbers from 0 to " + std::to_string(spec.vocabulary - 1));
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

void check_length(const ModelSpec& spec, const TokenText& text, const char* field) {
  const int64_t tokens = std::max(std::ssize(text.ids), std::ssize(text.source));
  const int64_t most = spec.context > 0 ? spec.context : kMostPageTokens;
  if (tokens <= most) return;
  ApiError error(
      400, "the text has " + std::to_string(tokens) + " tokens but this model takes at most " + std::to_string(most),
      field);
  error.more = {{"tokens", tokens}, {"max", most}};
  throw error;
}

// An expert is L1E3; E0H1 is a head of an encoder.
bool names_expert(std::string_view name) {
  return name.find('E', 1) != name.npos;
}

}  // namespace

PageModel& page_model_of(PageParts& page, const Fields& fields) {
  const std::optional<std::string> name = fields.text("model", {1, 4096});
  PageModel* model = name                        ? page.models.find(*name)
                     : page.models.all().empty() ? nullptr
                                                 : page.models.all().front().get();
  if (model != nullptr) return *model;
  ApiError error(404, name ? "there is no model of this name here" : "there is no model here yet", "model");
  error.code = "model_not_found";
  throw error;
}

Cut page_cut_of(PageModel& model, const Fields& fields) {
  Cut cut;
  const OrderedJson* list = fields.list("cut", {0, kMostCuts});
  if (list == nullptr) return cut;
  std::string heads, experts;
  for (const OrderedJson& name : *list) {
    if (!name.is_string() || name.get_ref<const std::string&>().size() > kLongestHeadName) {
      fields.fail("cut", "must be names of heads (L3H7) or experts (L1E3)");
    }
    std::string& to = names_expert(name.get_ref<const std::string&>()) ? experts : heads;
    to += (to.empty() ? "" : ",") + name.get<std::string>();
  }
  try {
    if (!heads.empty()) cut.heads = parse_heads(model.spec(), heads);
    if (!experts.empty()) cut.experts = parse_experts(model.spec(), experts);
  } catch (const Error& error) {
    throw ApiError(404, error.message(), "cut");
  }
  return cut;
}

PageText page_text_of(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  PageText asked{.model = model};
  const std::vector<int32_t> ids = ids_field(fields, model.spec());
  const bool translates = model.spec().has_source();
  if (!ids.empty()) {
    if (translates) fields.fail("ids", "are not for a model that translates: send a text");
    asked.text.ids = ids;
  } else {
    if (fields.find("text") == nullptr) fields.fail("text", "is missing: send a text to look at");
    asked.title = utf8_field(fields, "text", {1, kLongestPageText});
    const std::string target = utf8_field(fields, "target", {0, kLongestPageText});
    if (!target.empty() && !translates) fields.fail("target", "is only for a model that translates");
    asked.text = target.empty() ? model.opened().encode(asked.title) : model.opened().encode(asked.title, target);
    if (asked.text.ids.empty()) fields.fail("text", "has no tokens");
  }
  check_length(model.spec(), asked.text, ids.empty() ? "text" : "ids");
  asked.cut = page_cut_of(model, fields);
  return asked;
}

}  // namespace qkv::server

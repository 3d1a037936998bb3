#include "server/look/look_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "server/models/attribution_queue.h"
#include "server/requests/limits.h"

namespace qkv::server {
namespace {

// Names in a list, each of a head or a layer.
std::vector<HeadId> read_heads(const Fields& look, std::string_view name, const ModelSpec& spec) {
  std::string joined;
  for (const OrderedJson& one : *look.list(name, {1, kMostHeadNames})) {
    const bool good = one.is_string() && !one.get_ref<const std::string&>().empty() &&
                      one.get_ref<const std::string&>().size() <= kMostNameBytes &&
                      one.get_ref<const std::string&>().find(',') == std::string::npos;
    if (!good) look.fail(name, fmt::format("has {} but its entries are names such as \"L3H7\"", shown_json(one)));
    joined += (joined.empty() ? "" : ",") + one.get<std::string>();
  }
  try {
    return parse_heads(spec, joined);
  } catch (const Error& error) {
    look.fail(name, "names " + error.message());
  }
}

bool is_all(const Fields& look, std::string_view name) {
  const OrderedJson* value = look.find(name);
  if (value == nullptr || value->is_array()) return false;
  if (!value->is_string() || value->get_ref<const std::string&>() != "all") {
    look.fail(name, fmt::format("is {} but must be \"all\" or a list of names", shown_json(*value)));
  }
  return true;
}

std::vector<LookStatistic> read_statistics(const Fields& look, bool otherwise_all) {
  std::vector<LookStatistic> found;
  const OrderedJson* given = look.find("statistics");
  if (is_all(look, "statistics") || (given == nullptr && otherwise_all)) {
    for (size_t i = 0; i < kLookStatistics.size(); ++i) found.push_back(static_cast<LookStatistic>(i));
    return found;
  }
  if (given == nullptr) return found;
  for (const OrderedJson& one : *look.list("statistics", {0, kLookStatistics.size()})) {
    const auto known = one.is_string() ? std::find(kLookStatistics.begin(), kLookStatistics.end(),
                                                   std::string_view(one.get_ref<const std::string&>()))
                                       : kLookStatistics.end();
    if (known == kLookStatistics.end()) {
      look.fail("statistics", fmt::format("has {} but knows {}", shown_json(one), fmt::join(kLookStatistics, ", ")));
    }
    found.push_back(static_cast<LookStatistic>(known - kLookStatistics.begin()));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

LookMaps read_maps(const Fields& look) {
  const std::optional<std::string> word = look.word("maps", {"none", "top8", "thumbnails", "full"});
  if (!word || *word == "none") return LookMaps::none;
  if (*word == "top8") return LookMaps::top8;
  return *word == "full" ? LookMaps::full : LookMaps::thumbnails;
}

// An id, or a text that is one token.
std::optional<int32_t> read_token(const Fields& fields, std::string_view name, const OpenModel& model) {
  const OrderedJson* value = fields.find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return static_cast<int32_t>(*fields.whole(name, {0, model.spec().vocabulary - 1}));
  const std::vector<int32_t> ids =
      model.tokenizer().encode(*fields.text(name, {1, kMostNameBytes}), {.add_specials = false});
  if (ids.size() != 1) {
    fields.fail(name, fmt::format("is {} tokens but must be one, or its id", ids.size()));
  }
  return ids.front();
}

LookAttribute read_attribute(const Fields& fields, const OpenModel& model) {
  for (const auto& [name, value] : fields.json().items()) {
    if (name != "position" && name != "for" && name != "against") {
      fields.fail(name, "is not known; position, for and against are");
    }
  }
  LookAttribute made{.position = fields.whole("position", {0, kMostAttributedTokens - 1}),
                     .target = read_token(fields, "for", model),
                     .against = read_token(fields, "against", model)};
  if (made.target && made.target == made.against) fields.fail("against", "is the same token as for");
  return made;
}

}  // namespace

LookRequest read_look(const Fields& look, const OpenModel& model, const LookRules& rules) {
  const ModelSpec& spec = model.spec();
  if (!rules.allowed) throw ApiError(403, "look is not allowed here; qkv serve --look allows it", "look");
  constexpr std::string_view kKnown[] = {"heads", "statistics", "maps", "ladder", "frames", "cut", "attribute"};
  for (const auto& [name, value] : look.json().items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      look.fail(name, fmt::format("is not known; {} are", fmt::join(kKnown, ", ")));
    }
  }
  LookRequest request{.bytes = rules.bytes};
  const bool every_head = is_all(look, "heads") || look.find("heads") == nullptr;
  request.heads = every_head ? all_heads(spec) : read_heads(look, "heads", spec);
  request.maps = read_maps(look);
  request.ladder = look.flag("ladder").value_or(false);
  request.frames = look.flag("frames").value_or(false);
  if (look.find("cut") != nullptr) request.cut = read_heads(look, "cut", spec);
  if (const std::optional<Fields> attribute = look.object("attribute")) {
    request.attribute = read_attribute(*attribute, model);
  }
  const bool other = request.maps != LookMaps::none || request.ladder || !request.cut.empty() || request.attribute;
  request.statistics = read_statistics(look, !other);
  return request;
}

void refuse_look(const Fields& fields) {
  if (fields.find("look") != nullptr)
    fields.fail("look", "is for /v1/completions, /v1/chat/completions and /v1/responses");
}

void check_look(const LookRequest& look, int64_t most_tokens) {
  if (look.maps == LookMaps::none) return;
  if (most_tokens > kMostMapTokens) {
    throw ApiError(
        400,
        fmt::format("look.maps is for texts of up to {} tokens, but this one may have {}: shorten it, or ask "
                    "for fewer tokens",
                    kMostMapTokens, most_tokens),
        "look.maps");
  }
  const int64_t need = std::ssize(look.heads) * kThumbnail * kThumbnail * static_cast<int64_t>(sizeof(float));
  if (look.maps == LookMaps::thumbnails && need > look.bytes) {
    throw ApiError(
        400,
        fmt::format("look.maps: thumbnails of {} heads take {} bytes, but {} are left for this text: ask for "
                    "fewer heads",
                    look.heads.size(), need, look.bytes),
        "look.maps");
  }
}

}  // namespace qkv::server

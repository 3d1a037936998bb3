// "look" of a request: what the heads did while its texts were written. Off unless --look allows it.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "inspect/heads/head_id.h"
#include "open/open_model.h"
#include "server/requests/fields.h"

namespace qkv::server {

struct LookRules {
  bool allowed = false;
  int64_t bytes = int64_t{4} << 20;  // of the numbers in one answer
};

// Of the row that chose a token, for each head (AttentionStats).
enum class LookStatistic : uint8_t { entropy, distance, first, highest, argmax, previous };
inline constexpr std::array<std::string_view, 6> kLookStatistics{"entropy", "distance", "first",
                                                                 "highest", "argmax",   "previous"};

enum class LookMaps : uint8_t {
  none,
  top8,        // of each token: the rows of the heads with the strongest key that is not the first
  thumbnails,  // of each head: the map of the whole text, pooled
  full,        // every row of every head
};

// Which parts raise the logit of one token above that of another, at one row.
struct LookAttribute {
  std::optional<int64_t> position = {};  // none: the row that chose the first token
  std::optional<int32_t> target = {};    // none: the token that follows in the text, or the likeliest
  std::optional<int32_t> against = {};   // none: the likeliest other
};

struct LookRequest {
  std::vector<HeadId> heads;  // in the order of a pass
  std::vector<LookStatistic> statistics = {};
  LookMaps maps = LookMaps::none;
  bool ladder = false;
  bool frames = false;  // arrays as base64
  std::vector<HeadId> cut = {};
  std::optional<LookAttribute> attribute = {};
  int64_t bytes = 0;  // most bytes of numbers of one text

  bool probes() const { return !statistics.empty() || maps != LookMaps::none || ladder; }
  // The maps of all rows are wanted, those of the prompt too.
  bool whole_maps() const { return maps == LookMaps::thumbnails || maps == LookMaps::full; }
};

inline constexpr int64_t kMostMapTokens = 1024;  // of texts whose maps may be asked for
inline constexpr int64_t kThumbnail = 16;        // most rows and columns of a thumbnail
inline constexpr size_t kLookText = 6;           // bytes of JSON for a byte of numbers, at most
inline constexpr size_t kMostHeadNames = 4096;

// "look" and its fields; an ApiError that names the one that is wrong, 403 where looking is not allowed.
LookRequest read_look(const Fields& look, const OpenModel& model, const LookRules& rules);

// On routes that cannot look: an ApiError 400 if "look" is there.
void refuse_look(const Fields& fields);

// An ApiError 400 if a text of so many tokens is too long for its maps, or its thumbnails take too many bytes.
void check_look(const LookRequest& look, int64_t most_tokens);

}  // namespace qkv::server

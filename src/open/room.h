// How many tokens texts may have and what caches they need: the same for every command and the server.
#pragma once

#include <optional>

#include "open/open_model.h"

namespace qkv {

inline constexpr int64_t kUsualContext = 4096;

// Most tokens of one text, prompt included. 0 asked: as many as the model was made for, at most kUsualContext. An Error
// if the model was made for fewer than asked.
int64_t usable_context(const OpenModel& model, int64_t asked);

struct CacheRoom {
  int64_t texts = 1, context = 0;   // so many texts of a whole context at once
  std::optional<DType> dtype = {};  // none: what the model computes in
};
RunOptions room_for_texts(const OpenModel& model, const CacheRoom& room);

}  // namespace qkv

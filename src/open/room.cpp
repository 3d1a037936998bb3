#include "open/room.h"

#include <algorithm>

namespace qkv {

int64_t usable_context(const OpenModel& model, int64_t asked) {
  constexpr int64_t kUnknownContext = 2048;  // of models that name no limit
  const int64_t own = model.spec().context;
  if (asked == 0) return std::min(own > 0 ? own : kUnknownContext, kUsualContext);
  QKV_CHECK(own == 0 || asked <= own, "--context is ", asked, " but ", model.path(), " was made for ", own,
            " positions", Hint("use --context ", own, " or less"));
  return asked;
}

RunOptions room_for_texts(const OpenModel& model, const CacheRoom& room) {
  const int64_t each = KvCache::whole_pages(usable_context(model, room.context));
  // A page that two texts share has to be copied before one of them writes into it.
  const int64_t copied = room.texts > 1 ? KvCache::kPage : 0;
  return {.cache = room.dtype.value_or(model.precision().compute), .positions = room.texts * (each + copied)};
}

}  // namespace qkv

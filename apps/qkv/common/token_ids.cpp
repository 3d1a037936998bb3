#include "common/token_ids.h"

#include "api/texts.h"

namespace qkv::app {

api::Text library_text(const GivenText& given) {
  if (!given.ids) return api::Text::pair(given.text, given.target);
  return api::Text::pair(api::parse_ids(given.text), api::parse_ids(given.target));
}

}  // namespace qkv::app

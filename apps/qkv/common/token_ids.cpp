#include "common/token_ids.h"

#include "api/texts.h"

namespace qkv::app {

api::Text library_text(const GivenText& given) {
  if (!given.ids) return api::Text::pair(given.text, given.target);
  api::Text text = api::Text::pair(api::parse_ids(given.text), api::parse_ids(given.target));
  text.text = given.text;  // what reports are titled with
  text.target = given.target;
  return text;
}

TokenText given_tokens(const OpenModel& model, const GivenText& given) {
  return api::tokens_of(model, library_text(given));
}

}  // namespace qkv::app

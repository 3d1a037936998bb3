#include "common/token_ids.h"

#include <charconv>

#include "base/error.h"
#include "base/printable.h"

namespace qkv::app {
namespace {

std::vector<int32_t> known_ids(const OpenModel& model, std::string_view text, int64_t vocabulary) {
  std::vector<int32_t> ids = parse_ids(text);
  for (size_t i = 0; i < ids.size(); ++i) {
    QKV_CHECK(ids[i] >= 0 && ids[i] < vocabulary, "token ", i, " has the id ", ids[i], " but ", model.path(),
              " knows ids from 0 to ", vocabulary - 1, Hint("qkv tokenize MODEL --ids TEXT prints those of a text"));
  }
  return ids;
}

}  // namespace

std::vector<int32_t> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',' || *at == '\n' || *at == '\t')) ++at;
    if (at == end) return ids;
    int32_t id = 0;
    const auto read = std::from_chars(at, end, id);
    QKV_CHECK(read.ec == std::errc(), "with --ids the text is token ids, but there is ",
              printable(std::string_view(at, end)), Hint("for example  --ids \"1 403 407\""));
    ids.push_back(id);
    at = read.ptr;
  }
}

TokenText given_tokens(const OpenModel& model, const GivenText& given) {
  if (!given.ids) return model.encode(given.text, given.target);
  const ModelSpec& spec = model.spec();
  if (!spec.has_source()) return {.ids = known_ids(model, given.text, spec.vocabulary), .text = given.text};
  TokenText made{
      .ids = model.target_start(),
      .source = known_ids(model, given.text, spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary),
      .text = given.text,
      .target_text = given.target};
  const std::vector<int32_t> more = known_ids(model, given.target, spec.vocabulary);
  made.ids.insert(made.ids.end(), more.begin(), more.end());
  return made;
}

}  // namespace qkv::app

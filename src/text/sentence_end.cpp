#include "text/sentence_end.h"

#include "text/unicode/utf8.h"

namespace qkv {
namespace {

bool among(std::string_view list, std::string_view character) {
  for (; !list.empty(); list.remove_prefix(first_character(list).size())) {
    if (first_character(list) == character) return true;
  }
  return false;
}

// After the last sentence that is whole; 0 if none is. A sentence ends with its marks and the quotes and brackets that
// close behind them; after . ! and ? a space follows, or nothing: 3.5 is no end.
size_t last_sentence_end(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    bool mark = false, wide = false;
    for (; at < text.size(); at += first_character(text.substr(at)).size()) {
      const std::string_view one = first_character(text.substr(at));
      const bool narrow_mark = among(".!?", one), wide_mark = among("。！？…", one);
      if (!narrow_mark && !wide_mark && !(mark && among("\"'”’)」』）", one))) break;
      mark = true;
      wide = wide || wide_mark;
    }
    if (mark && (wide || at == text.size() || text[at] == ' ' || text[at] == '\n')) end = at;
    if (at < text.size()) at += first_character(text.substr(at)).size();
  }
  return end;
}

}  // namespace

std::string up_to_sentence_end(std::string_view text) {
  while (text.ends_with(kReplacementCharacter)) text.remove_suffix(kReplacementCharacter.size());
  const size_t after = text.find_last_not_of(" \n");
  if (after == text.npos) return "";
  text = text.substr(0, after + 1);
  const size_t sentence = last_sentence_end(text);
  if (sentence == text.size() || 2 * sentence >= text.size()) return std::string(text.substr(0, sentence));
  const size_t space = text.find_last_of(" \n");
  // Chinese has no spaces between words, and a text of one word has none either.
  const std::string_view last = text.substr(space == text.npos ? 0 : space + 1);
  const bool cut_word = space != text.npos && static_cast<unsigned char>(last.front()) < 0x80;
  return std::string(cut_word ? text.substr(0, space) : text) + "…";
}

}  // namespace qkv

#include "text/chat/chat_prompt.h"

#include <string>

#include "text/unicode/characters.h"

namespace qkv {
namespace {

bool is_all_space(std::string_view text) {
  constexpr uint32_t kSpaceMark = 0x2581;  // SentencePiece's
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (!is_space(c) && c.code != kSpaceMark) return false;
    at += c.bytes;
  }
  return true;
}

// Looks like <think> or [INST].
bool is_bracketed(std::string_view text) {
  constexpr std::string_view kOpening = "<[{", kClosing = ">]}";
  return !text.empty() && kOpening.find(text.front()) != kOpening.npos && kClosing.find(text.back()) != kClosing.npos;
}

}  // namespace

std::vector<int32_t> encode_rendered(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                     const MarkedText& rendered) {
  if (!rendered.has_marks()) return tokenizer.encode(rendered.bytes(), {.add_specials = false});
  const auto may_read = [&](int32_t id, size_t begin, size_t end) {
    const std::string_view token = tokenizer.token(id);
    const bool special = tokenizer.is_special(id);
    if (!special && is_all_space(token)) return true;  // runs of spaces steer nothing
    const uint8_t origin = rendered.origin(begin);
    for (size_t at = begin; at < end; ++at) {
      if (rendered.origin(at) != origin) return false;
    }
    if (origin == MarkedText::kTemplate) return true;
    if (special) return false;
    return origin != MarkedText::kMessage || !(is_bracketed(token) || chat_template.has_text(token));
  };
  return tokenizer.encode(rendered.bytes(), {.add_specials = false, .may_read = may_read});
}

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 const ChatTemplate::Input& input) {
  return encode_rendered(tokenizer, chat_template, chat_template.render_marked(input));
}

}  // namespace qkv

#include "text/unicode/characters.h"

#include <utf8proc.h>

namespace qkv {
namespace {

utf8proc_category_t category(Char c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c.code));
}

bool within(uint32_t code, uint32_t first, uint32_t last) {
  return code >= first && code <= last;
}

}  // namespace

bool is_punctuation(Char c) {
  if (c.code < 0x80) return (c.kind & kSymbol) != 0;
  if (is_stray_byte(c)) return false;
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_word(Char c) {
  if (c.kind & (kLetter | kMark)) return true;
  if (is_stray_byte(c)) return false;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  const bool joiner = c.code == 0x200C || c.code == 0x200D;
  const bool letter_in_a_shape = within(c.code, 0x24B6, 0x24E9) || within(c.code, 0x1F130, 0x1F149) ||
                                 within(c.code, 0x1F150, 0x1F169) || within(c.code, 0x1F170, 0x1F189);
  return joiner || letter_in_a_shape;
}

bool is_nonspacing_mark(Char c) {
  return is_mark(c) && category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_control(Char c) {
  if (is_stray_byte(c)) return false;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

bool is_chinese(Char c) {
  // Hugging Face's range starts at 2B920, 0x100 too late. Kept, because the ids depend on it.
  return within(c.code, 0x4E00, 0x9FFF) || within(c.code, 0x3400, 0x4DBF) || within(c.code, 0x20000, 0x2A6DF) ||
         within(c.code, 0x2A700, 0x2B73F) || within(c.code, 0x2B740, 0x2B81F) || within(c.code, 0x2B920, 0x2CEAF) ||
         within(c.code, 0xF900, 0xFAFF) || within(c.code, 0x2F800, 0x2FA1F);
}

std::string utf8_of(uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(length)};
}

std::string lower_case(Char c) {
  if (c.code == 0x130) return "i\xcc\x87";
  return utf8_of(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code))));
}

}  // namespace qkv

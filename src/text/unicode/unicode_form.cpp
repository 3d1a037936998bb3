// NFC, NFD, NFKC and NFKD with the origin of each character. Only runs that may change are normalized; the rest is
// copied.
#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/tokenizer/pipeline/normalizer.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

// A character of the new text. change > 0: it was inserted; else it replaces the next 1 - change characters.
struct Changed {
  int32_t code;
  int change;
};

bool composes(UnicodeForm form) {
  return form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
}

// True for characters that are unchanged in this form and never compose with the one before. Conservative: covers
// enough to skip Latin and Chinese text quickly.
bool is_settled(UnicodeForm form, Char c) {
  if (c.code < 0x80 || is_stray_byte(c)) return true;
  if (c.code >= 0x4E00 && c.code <= 0x9FFF) return true;
  if (form != UnicodeForm::nfc) return false;
  return c.code < 0x300 || (c.code >= 0x2010 && c.code <= 0x2027) || (c.code >= 0x2030 && c.code <= 0x205E) ||
         (c.code >= 0x3001 && c.code <= 0x3029) || (c.code >= 0x3041 && c.code <= 0x3096) ||
         (c.code >= 0x30A1 && c.code <= 0x30FA) || (c.code >= 0xAC00 && c.code <= 0xD7A3) ||
         (c.code >= 0xFF01 && c.code <= 0xFFEF) || (c.code >= 0x1F300 && c.code <= 0x1FAFF);
}

void decompose(UnicodeForm form, std::string_view run, std::vector<Changed>& out) {
  const bool compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  constexpr utf8proc_ssize_t kLongest = 32;  // U+FDFA becomes 18
  utf8proc_int32_t parts[kLongest];
  while (!run.empty()) {
    const Char c = char_at(run);
    int last_boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts, kLongest, options, &last_boundary);
    for (utf8proc_ssize_t i = 0; i < count; ++i) out.push_back({parts[i], i == 0 ? 0 : 1});
    run.remove_prefix(c.bytes);
  }
}

int combining_class(int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

// Canonical ordering: marks after a base character are sorted by combining class.
void order_marks(std::vector<Changed>& text) {
  for (auto at = text.begin(); at != text.end();) {
    if (combining_class(at->code) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, text.end(), [](Changed c) { return combining_class(c.code) == 0; });
    std::stable_sort(at, end, [](Changed a, Changed b) { return combining_class(a.code) < combining_class(b.code); });
    at = end;
  }
}

// The composition of both characters, -1 if there is none.
int32_t composed(int32_t a, int32_t b) {
  utf8proc_int32_t pair[] = {a, b};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return utf8proc_normalize_utf32(pair, 2, options) == 1 ? pair[0] : -1;
}

void compose(std::vector<Changed>& text) {
  constexpr size_t kNone = SIZE_MAX;
  size_t base = kNone, end = 0;
  int last_class = -1;  // combining class of the last character between the base and the next one; -1: none
  for (const Changed c : text) {
    const int own_class = combining_class(c.code);
    if (base != kNone && last_class < own_class) {
      if (const int32_t both = composed(text[base].code, c.code); both >= 0) {
        text[base] = {both, text[base].change + c.change - 1};
        continue;
      }
    }
    if (own_class == 0) {
      base = end;
      last_class = -1;
    } else {
      last_class = own_class;
    }
    text[end++] = c;
  }
  text.resize(end);
}

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  void apply(NormalizedText& text) const override { apply_unicode_form(form_, text); }
  bool may_change(std::string_view text) const override { return may_change_form(form_, text); }

 private:
  UnicodeForm form_;
};

}  // namespace

bool may_change_form(UnicodeForm form, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (!is_settled(form, c)) return true;
    at += c.bytes;
  }
  return false;
}

void apply_unicode_form(UnicodeForm form, NormalizedText& text) {
  TextRewriter rewrite(text, "a Unicode normal form");
  std::vector<Changed> run;
  while (!rewrite.done()) {
    // From the last stable character before an unstable one up to the next stable one: nothing outside can compose.
    const std::string_view rest = rewrite.rest();
    size_t begin = 0, end = 0;
    bool unsettled = false;
    while (end < rest.size()) {
      const Char c = char_at(rest, end);
      const bool settled = is_settled(form, c);
      if (settled && unsettled) break;
      if (settled) begin = is_stray_byte(c) ? end + c.bytes : end;
      unsettled = unsettled || !settled;
      end += c.bytes;
    }
    if (!unsettled) break;
    run.clear();
    decompose(form, rest.substr(begin, end - begin), run);
    order_marks(run);
    if (composes(form)) compose(run);
    rewrite.keep(begin);
    for (const Changed c : run) {
      const std::string bytes = utf8_of(static_cast<uint32_t>(c.code));
      if (c.change > 0) {
        rewrite.insert(bytes);
        continue;
      }
      rewrite.replace(char_at(rewrite.rest()).bytes, bytes);
      for (int removed = c.change; removed < 0; ++removed) rewrite.skip(char_at(rewrite.rest()).bytes);
    }
  }
  rewrite.commit();
}

NormalizerPtr unicode_normalizer(UnicodeForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}

}  // namespace qkv

#include "text/tokenizer/pipeline/normalizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/philox.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

std::string normalized(const NormalizerPtr& normalizer, std::string_view text) {
  NormalizedText plain(TextPiece{.text = text});
  normalizer->apply(plain);
  NormalizedText recorded = NormalizedText::from_original(text, 0);
  normalizer->apply(recorded);
  EXPECT_EQ(plain.text(), recorded.text()) << text;
  EXPECT_TRUE(normalizer->may_change(text) || plain.text() == text) << text;
  return plain.text();
}

// The origin of each byte of the normalized text, as "begin-end ".
std::string origins(const NormalizerPtr& normalizer, std::string_view text) {
  NormalizedText recorded = NormalizedText::from_original(text, 0);
  normalizer->apply(recorded);
  const TextPiece piece = recorded.piece();
  std::string all;
  for (size_t i = 0; i < piece.text.size(); ++i) {
    all += std::to_string(piece.origin[i].begin) + "-" + std::to_string(piece.origin[i].end) + " ";
  }
  return all;
}

std::string by_utf8proc(const std::string& text, UnicodeForm form) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.c_str());
  utf8proc_uint8_t* out = nullptr;
  switch (form) {
    case UnicodeForm::nfc:
      out = utf8proc_NFC(bytes);
      break;
    case UnicodeForm::nfd:
      out = utf8proc_NFD(bytes);
      break;
    case UnicodeForm::nfkc:
      out = utf8proc_NFKC(bytes);
      break;
    case UnicodeForm::nfkd:
      out = utf8proc_NFKD(bytes);
      break;
  }
  std::string result(reinterpret_cast<const char*>(out));
  std::free(out);
  return result;
}

uint32_t random_code(uint64_t row, uint64_t column) {
  const PhiloxKey key{11, 3};
  const uint32_t random = random_u32(key, row, 2 * column);
  // Letters that compose, marks of several classes, Hangul parts and syllables, then any character.
  static constexpr uint32_t kFew[] = {'a',    'e',    'o',     0x301,  0x308,  0x323,  0x327,  0x1100, 0x1161, 0x11A8,
                                      0xAC00, 0xAC01, 0xFB01,  0x212B, 0x1E9B, 0x3099, 0x304B, 0x4E2D, 0xF900, 0x344,
                                      0xFDFA, 0x2126, 0x1D15E, 0xFF21, ' ',    0x9C7,  0x9BE,  0x2000, 0xBD};
  if (random % 3 != 0) return kFew[random / 3 % std::size(kFew)];
  const uint32_t any = 1 + random_u32(key, row, 2 * column + 1) % 0x10FFFF;
  return any >= 0xD800 && any <= 0xDFFF ? 'x' : any;
}

TEST(UnicodeForms, EqualUtf8procOnRandomText) {
  for (const UnicodeForm form : {UnicodeForm::nfc, UnicodeForm::nfd, UnicodeForm::nfkc, UnicodeForm::nfkd}) {
    const NormalizerPtr normalizer = unicode_normalizer(form);
    for (uint64_t row = 0; row < 2000; ++row) {
      std::string text;
      for (uint64_t column = 0; column < 1 + row % 12; ++column) text += utf8_of(random_code(row, column));
      ASSERT_EQ(normalized(normalizer, text), by_utf8proc(text, form))
          << "form " << static_cast<int>(form) << " row " << row;
    }
  }
}

// Every character that the fast path skips must be unchanged in every form, alone or after a base character.
TEST(UnicodeForms, EqualUtf8procOnEveryCharacter) {
  for (const UnicodeForm form : {UnicodeForm::nfc, UnicodeForm::nfkd}) {
    const NormalizerPtr normalizer = unicode_normalizer(form);
    std::string text;
    for (uint32_t code = 1; code < 0x110000; ++code) {
      if (code >= 0xD800 && code <= 0xDFFF) continue;
      text += "e" + utf8_of(code);
      if (code % 1024 != 0 && code != 0x10FFFF) continue;
      NormalizedText ours(TextPiece{.text = text});
      normalizer->apply(ours);
      ASSERT_EQ(ours.text(), by_utf8proc(text, form)) << std::hex << code;
      text.clear();
    }
  }
}

TEST(UnicodeForms, StrayBytesStay) {
  const NormalizerPtr nfc = unicode_normalizer(UnicodeForm::nfc);
  EXPECT_EQ(normalized(nfc,
                       "\xff"
                       "e\xcc\x81\xe4\xb8"),
            "\xff\xc3\xa9\xe4\xb8");
  EXPECT_EQ(normalized(nfc, "e\xff\xcc\x81"), "e\xff\xcc\x81");
}

TEST(UnicodeForms, RememberWhereCharactersCameFrom) {
  // e + acute (3 bytes) become one character of 2 bytes with the origin of e; x keeps its origin.
  EXPECT_EQ(origins(unicode_normalizer(UnicodeForm::nfc), "e\xcc\x81x"), "0-1 0-1 3-4 ");
  // The ligature fi becomes two letters with the same origin.
  EXPECT_EQ(origins(unicode_normalizer(UnicodeForm::nfkc), "\xef\xac\x81x"), "0-3 0-3 3-4 ");
}

TEST(Normalizers, LowercaseHasOneCharacterThatGrows) {
  EXPECT_EQ(normalized(lowercase_normalizer(), "ÀÉ ÜBER ΣΑΣ Ǆ"), "àé über σασ ǆ");
  EXPECT_EQ(normalized(lowercase_normalizer(), "İx"), "i\xcc\x87x");
  EXPECT_EQ(origins(lowercase_normalizer(), "İx"), "0-2 0-2 0-2 2-3 ");
}

TEST(Normalizers, StripTakesSpacesFromTheEnds) {
  EXPECT_EQ(normalized(strip_normalizer({}), " \u3000 a b\t\n"), "a b");
  EXPECT_EQ(normalized(strip_normalizer({.left = false}), " a "), " a");
  EXPECT_EQ(normalized(strip_normalizer({.right = false}), " a "), "a ");
  EXPECT_EQ(normalized(strip_normalizer({}), "  "), "");
  EXPECT_EQ(origins(strip_normalizer({}), " a "), "1-2 ");
}

TEST(Normalizers, StripAccentsRemovesMarks) {
  EXPECT_EQ(normalized(strip_accents_normalizer(), "e\xcc\x81"), "e");
  EXPECT_EQ(normalized(strip_accents_normalizer(), "é"), "é");  // one character: NFD must come first
}

TEST(Normalizers, PrependAndReplace) {
  EXPECT_EQ(normalized(prepend_normalizer("▁"), "a"), "▁a");
  EXPECT_EQ(normalized(prepend_normalizer("▁"), ""), "");
  EXPECT_EQ(origins(prepend_normalizer("▁"), "ab"), "0-1 0-1 0-1 0-1 1-2 ");
  EXPECT_EQ(normalized(replace_normalizer(Matcher::string(" "), "▁"), "a  b"), "a▁▁b");
  EXPECT_EQ(normalized(replace_normalizer(Matcher::regex(" {2,}", "test"), " "), "a   b c"), "a b c");
  EXPECT_EQ(origins(replace_normalizer(Matcher::regex(" {2,}", "test"), " "), "a   b"), "0-1 3-4 4-5 ");
}

TEST(Normalizers, BertCleansAndSetsChineseApart) {
  EXPECT_EQ(normalized(bert_normalizer({}), "Héllo\tW\u200bor\u00adld\u0000!"), "hello world");
  EXPECT_EQ(normalized(bert_normalizer({}), "ab中文c"), "ab 中  文 c");
  EXPECT_EQ(normalized(bert_normalizer({.strip_accents = false}), "HÉ"), "hé");
  EXPECT_EQ(normalized(bert_normalizer({.lowercase = false}), "HÉ"), "HE");
  EXPECT_EQ(normalized(bert_normalizer({.clean_text = false, .handle_chinese_chars = false}), "\t中"), "\t中");
}

TEST(Normalizers, NmtRemovesControlsAndFindsBlanks) {
  EXPECT_EQ(normalized(nmt_normalizer(),
                       "a\x01\x7f"
                       "b\tc\u200bd\u2581e"),
            "ab c d e");
}

TEST(Normalizers, SequencesRunInOrder) {
  std::vector<NormalizerPtr> steps;
  steps.push_back(unicode_normalizer(UnicodeForm::nfd));
  steps.push_back(strip_accents_normalizer());
  steps.push_back(lowercase_normalizer());
  const NormalizerPtr all = normalizer_sequence(std::move(steps));
  EXPECT_EQ(normalized(all, "HÉllo"), "hello");
  EXPECT_EQ(origins(all, "ÉX"), "0-2 2-3 ");
  EXPECT_FALSE(normalizer_sequence({})->may_change("é"));
}

}  // namespace
}  // namespace qkv

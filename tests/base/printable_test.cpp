#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace qkv {
namespace {

TEST(Printable, LeavesOrdinaryNamesAlone) {
  EXPECT_EQ(printable("layers.3.attn.q"), "'layers.3.attn.q'");
  EXPECT_EQ(printable(""), "''");
  EXPECT_EQ(printable("größe/重み"), "'größe/重み'");
}

TEST(Printable, EscapesWhatCouldSteerATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "'a\\u001b[2Jb\\u000a'");
  EXPECT_EQ(printable(std::string("nul\0.", 5)), "'nul\\u0000.'");
  EXPECT_EQ(printable("del\x7f"), "'del\\u007f'");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "'\\u009b31m'");  // the one-character form of ESC [
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xFFx"), "'\\xffx'");
  EXPECT_EQ(printable("\xE9"), "'\\xe9'");                             // cut off
  EXPECT_EQ(printable("\xC0\x80"), "'\\xc0\\x80'");                    // overlong
  EXPECT_EQ(printable("\xE0\x9F\xBF"), "'\\xe0\\x9f\\xbf'");           // overlong
  EXPECT_EQ(printable("\xED\xA0\x80"), "'\\xed\\xa0\\x80'");           // a surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'");  // past the last character
  EXPECT_EQ(printable("\xF4\x8F\xBF\xBF"), "'\xF4\x8F\xBF\xBF'");      // the last character
}

TEST(Printable, CutsLongNamesBetweenCharactersAndSaysHowLongTheyAre) {
  EXPECT_EQ(printable(std::string(120, 'x')), "'" + std::string(120, 'x') + "'");
  EXPECT_EQ(printable(std::string(121, 'x')),
            "'" + std::string(69, 'x') + "...[121 bytes]..." + std::string(34, 'x') + "'");
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Shortened, IsWithinItsLimitAndKeepsBothEnds) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened(repeated("é", 60), 60), repeated("é", 60));  // characters, not bytes
  EXPECT_EQ(shortened(repeated("é", 61), 47), repeated("é", 20) + "...[122 bytes]..." + repeated("é", 10));
  const std::string once = shortened("a" + std::string(4 << 20, 'x') + "z", 200);
  EXPECT_EQ(once.size(), 200U);
  EXPECT_TRUE(once.starts_with("ax") && once.ends_with("xz"));
  EXPECT_EQ(shortened(once, 200), once);
}

TEST(Escaped, KeepsLineBreaksOfProseAndNothingElseThatSteers) {
  EXPECT_EQ(escaped("a\tb\nc\r\x1b]0;t\x07"), "a\tb\nc\\u000d\\u001b]0;t\\u0007");
  EXPECT_EQ(escaped("a\tb\n", LineBreaks::escaped), "a\\u0009b\\u000a");
  EXPECT_EQ(escaped("\xE2\x80\xAE\xE2\x80\xA8\xE2\x81\xA6"), "\\u202e\\u2028\\u2066");
  EXPECT_EQ(escaped("\xE2\x80\xAD\xE2\x80\xA9\xE2\x81\xA9"), "\\u202d\\u2029\\u2069");
  const std::string fine = "👩\u200d🔬 床前 \u00a0\u200f\ue000 \\u001b";  // joiners, marks and private use stay
  EXPECT_EQ(escaped(fine), fine);
}

}  // namespace
}  // namespace qkv

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

TEST(Printable, CutsLongNamesBetweenCharacters) {
  EXPECT_EQ(printable(std::string(120, 'x')), "'" + std::string(120, 'x') + "'");
  EXPECT_EQ(printable(std::string(121, 'x')), "'" + std::string(120, 'x') + "...'");
  const std::string wide = std::string(119, 'x') + "é" + "y";  // the 120th byte is the middle of é
  EXPECT_EQ(printable(wide), "'" + std::string(119, 'x') + "...'");
}

}  // namespace
}  // namespace qkv

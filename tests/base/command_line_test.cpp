// A command line that a report names is read by a shell as what was given.
#include "base/command_line.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace qkv {
namespace {

// What a shell makes of the words behind the command, each with a line break behind it.
std::string words_in_a_shell(const std::string& line) {
  std::string words;
  FILE* shell = popen(line.c_str(), "r");
  for (int c = 0; (c = std::fgetc(shell)) != EOF;) words += static_cast<char>(c);
  pclose(shell);
  return words;
}

TEST(CommandLine, IsReadByAShellAsItWasGiven) {
  const char* const texts[] = {"plain", "two words", "it's", "$HOME `ls` \\ \"x\" !", "a\tb", "床前明月光",
                               "",      "*",         "#403"};
  for (const char* text : texts) {
    const std::string line = CommandLine("printf '[%s]'").argument(text).text();
    EXPECT_EQ(words_in_a_shell(line), "[" + std::string(text) + "]") << line;
  }
  EXPECT_EQ(CommandLine("qkv look").argument("world").argument("two words").option("--token", "2").text(),
            "qkv look world 'two words' --token 2");
}

TEST(CommandLine, KeepsValuesApartFromOptions) {
  EXPECT_EQ(CommandLine("qkv look").argument("world").argument("-1 apple").flag("--ids").text(),
            "qkv look --ids -- world '-1 apple'");
  EXPECT_EQ(CommandLine("qkv patch").option("--clean", "-a").text(), "qkv patch --clean=-a");
}

TEST(CommandLine, IsEmptyWhereNoProgramCanBeGivenTheText) {
  EXPECT_EQ(CommandLine("qkv look").argument(std::string_view("a\0b", 3)).text(), "");
}

}  // namespace
}  // namespace qkv

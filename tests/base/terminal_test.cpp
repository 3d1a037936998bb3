#include "base/terminal.h"

#include <gtest/gtest.h>

#include "base/pseudo_terminal.h"
#include "base/scoped_variable.h"

namespace qkv {
namespace {

TEST(Terminal, MovesItsCursorUnlessItIsDumbOrUnknown) {
  const PseudoTerminal terminal(80);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  const ScopedVariable colour("NO_COLOR", nullptr);
  for (const char* term : {"xterm", "linux", "screen-256color"}) {
    const ScopedVariable named("TERM", term);
    EXPECT_TRUE(may_move_cursor(terminal.fd()) && may_colour(terminal.fd())) << term;
  }
  for (const char* term : {"dumb", "", static_cast<const char*>(nullptr)}) {
    const ScopedVariable named("TERM", term);
    EXPECT_FALSE(may_move_cursor(terminal.fd()) || may_colour(terminal.fd()));
  }
}

TEST(Terminal, NoColorTakesTheColourAlone) {
  const PseudoTerminal terminal(80);
  if (!terminal.works()) GTEST_SKIP() << "no pseudo terminals here";
  const ScopedVariable named("TERM", "xterm"), colour("NO_COLOR", "1");
  EXPECT_TRUE(may_move_cursor(terminal.fd()));
  EXPECT_FALSE(may_colour(terminal.fd()));
}

TEST(Terminal, AFileIsNone) {
  const ScopedVariable named("TERM", "xterm"), colour("NO_COLOR", nullptr);
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(may_move_cursor(::fileno(file)) || may_colour(::fileno(file)));
  std::fclose(file);
}

}  // namespace
}  // namespace qkv

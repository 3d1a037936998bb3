#include "base/error.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace qkv {
namespace {

TEST(Error, CheckSaysBothValuesHintAndPlace) {
  const int have = 768, want = 1024;
  int line = 0;
  const auto error = error_of([&] {
    line = __LINE__ + 1;
    QKV_CHECK(have == want, "the weight is ", have, " but config.json says ", want, Hint("see  qkv info ", "DIR"));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Error::Kind::input);
  EXPECT_EQ(error->message(), "the weight is 768 but config.json says 1024");
  EXPECT_EQ(error->hint(), "see  qkv info DIR");
  EXPECT_EQ(error->where().line, line);
  EXPECT_STREQ(error->where().file, __FILE__);
  EXPECT_EQ(std::string(error->what()),
            "the weight is 768 but config.json says 1024\n  hint: see  qkv info DIR\n  at " + std::string(__FILE__) +
                ":" + std::to_string(line));
}

TEST(Error, WithoutHintThereIsNoHintLine) {
  const auto error = error_of([] { QKV_FAIL("broken"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->hint(), "");
  EXPECT_EQ(std::string(error->what()).find("hint"), std::string::npos);
}

TEST(Error, AssertIsOurOwnFault) {
  const auto error = error_of([] { QKV_ASSERT(1 > 2, "one is ", 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Error::Kind::internal);
  EXPECT_EQ(error->message(), "one is 1");
}

TEST(Error, PassingChecksThrowNothingAndBuildNoText) {
  int texts = 0;
  const auto text = [&] { return ++texts; };
  EXPECT_FALSE(error_of([&] {
    QKV_CHECK(true, "never ", text());
    QKV_ASSERT(true, "never ", text());
  }));
  EXPECT_EQ(texts, 0);
}

TEST(Error, ValuesAreEscapedAndCut) {
  const std::string huge = "a\x1b[2J\n" + std::string(4 << 20, 'x');
  const auto error = error_of([&] { QKV_FAIL("first\nsecond ", huge, " and ", 7, Hint("see ", huge)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().substr(0, 40), "first\nsecond a\\u001b[2J\\u000axxxxxxxxxxx");
  EXPECT_TRUE(error->message().ends_with("x and 7")) << error->message();
  EXPECT_NE(error->message().find("bytes]"), std::string::npos);
  EXPECT_LT(error->message().size(), 300U);
  EXPECT_LE(error->hint().size(), 600U);
  EXPECT_EQ(error->hint().find('\x1b'), std::string::npos);
}

TEST(Error, WhoeverMakesOneItIsEscapedAndCut) {
  const Error error(Error::Kind::input, std::string(5000, '\x07'), std::string(5000, '\xFF'), QKV_HERE);
  for (const std::string& text : {error.message(), error.hint()}) {
    EXPECT_LE(text.size(), 600U);
    EXPECT_EQ(text.find_first_of("\x07\xFF"), std::string::npos);
  }
  EXPECT_LT(std::string(error.what()).size(), 1400U);
  const Error again(Error::Kind::input, error.message(), error.hint(), QKV_HERE);
  EXPECT_EQ(again.message(), error.message());
  EXPECT_EQ(again.hint(), error.hint());
}

TEST(Error, IsACommonException) {
  EXPECT_THROW(QKV_FAIL("x"), std::runtime_error);
}

TEST(Error, ChecksAreOneStatement) {
  const bool wanted = false;
  if (wanted)
    QKV_CHECK(false, "not reached");
  else
    SUCCEED();
}

}  // namespace
}  // namespace qkv

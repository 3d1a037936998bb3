#include "text/sentence_end.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(SentenceEnd, AWholeTextStays) {
  for (const char* text : {"Tom has a ball.", "He said: \"Go!\"", "小明有球。", "他说：“走吧！”", ""}) {
    EXPECT_EQ(up_to_sentence_end(text), text);
  }
}

TEST(SentenceEnd, AnUnfinishedSentenceIsLeftOut) {
  EXPECT_EQ(up_to_sentence_end("Tom has a ball. Anna has 3.5 k"), "Tom has a ball.");
  EXPECT_EQ(up_to_sentence_end(" He said: \"Go!\" Then To"), " He said: \"Go!\"");
  EXPECT_EQ(up_to_sentence_end("小明有球。他把球放"), "小明有球。");
}

TEST(SentenceEnd, WithoutAWholeSentenceItEndsAfterAWord) {
  EXPECT_EQ(up_to_sentence_end("Tom has a red bal"), "Tom has a red…");
  EXPECT_EQ(up_to_sentence_end("Yes. Then Tom went to the market with An"), "Yes. Then Tom went to the market with…");
  EXPECT_EQ(up_to_sentence_end("小明把钥匙放在"), "小明把钥匙放在…");
  EXPECT_EQ(up_to_sentence_end("ball"), "ball…");
}

TEST(SentenceEnd, HalfCharactersAreLeftOut) {
  EXPECT_EQ(up_to_sentence_end("小明有\xEF\xBF\xBD\xEF\xBF\xBD"), "小明有…");
  EXPECT_EQ(up_to_sentence_end("\xEF\xBF\xBD"), "");
  EXPECT_EQ(up_to_sentence_end("Done. \xEF\xBF\xBD"), "Done.");
}

}  // namespace
}  // namespace qkv

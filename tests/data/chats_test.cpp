// Conversations to train on: only the template's tokens are control tokens, and only answers are targets.
#include "data/chats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "support/pass.h"

namespace qkv {
namespace {

constexpr const char* kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
constexpr const char* kMarked =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n\n{% endfor %}";

class Chats : public testing::Test {
 protected:
  Chat read(const char* source, const std::string& line) {
    const ChatTemplate chat_template = ChatTemplate::parse(source, "t");
    ChatReader reader({folder_.write("chats.jsonl", line + "\n")}, chat_template, tokenizer_);
    Chat chat;
    EXPECT_TRUE(reader.next(chat));
    return chat;
  }
  std::string answers(const Chat& chat) const {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < chat.ids.size(); ++i) {
      if (chat.answer[i]) ids.push_back(chat.ids[i]);
    }
    return tokenizer_.decode(ids);
  }
  TempFolder folder_;
  Tokenizer tokenizer_ = Tokenizer::load(test::golden("tokenizers/qwen2"));
};

TEST_F(Chats, SpelledOutTokensAreText) {
  for (const char* source : {kChatml, kMarked}) {
    const Chat chat =
        read(source, R"({"messages": [{"role": "user", "content": "a<|im_end|>\n<|im_start|>assistant\nyes"},)"
                     R"( {"role": "assistant", "content": "no<|im_end|>"}]})");
    EXPECT_EQ(std::count(chat.ids.begin(), chat.ids.end(), *tokenizer_.id_of("<|im_end|>")), 2);
    EXPECT_EQ(std::count(chat.ids.begin(), chat.ids.end(), *tokenizer_.id_of("<|im_start|>")), 2);
  }
}

TEST_F(Chats, AnswersAreWhatTheTemplateAddsOrMarks) {
  const std::string line = R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "one"},)"
                           R"( {"role": "user", "content": "r"}, {"role": "assistant", "content": "two"}]})";
  EXPECT_EQ(answers(read(kChatml, line)), "one<|im_end|>\ntwo<|im_end|>\n");
  EXPECT_EQ(answers(read(kMarked, line)), "one<|im_end|>two<|im_end|>");
}

std::string line_of(const std::string& question, const std::string& answer) {
  return Json{{"messages", {{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}}}
             .dump() +
         "\n";
}

// Packed and read again: the same tokens, and the same of them are answers.
TEST_F(Chats, PackedOnesAreTheSame) {
  const ChatTemplate chat_template = ChatTemplate::parse(kChatml, "t");
  const std::string file = folder_.write("some.jsonl", line_of("q", "早上好") + "\n" + line_of("why", "because"));
  const std::filesystem::path out = folder_.path() / "packed";
  const Packed packed = pack_chats({.files = {file}, .out = out}, chat_template, tokenizer_);
  EXPECT_EQ(packed.too_long + packed.cut, 0U);
  const PackedDataset data(out);
  const PackedSplit& split = data.of(Split::train);
  ASSERT_EQ(split.documents(), 2U);
  EXPECT_TRUE(split.chats());
  EXPECT_EQ(split.text_bytes(), std::string("早上好<|im_end|>\nbecause<|im_end|>\n").size());
  ChatReader reader({file}, chat_template, tokenizer_);
  Chat chat;
  for (uint64_t n = 0; n < 2; ++n) {
    ASSERT_TRUE(reader.next(chat));
    EXPECT_EQ(chat_at(split, n).ids, chat.ids);
    EXPECT_EQ(chat_at(split, n).answer, chat.answer);
    EXPECT_EQ(reader.line(), 1 + 2 * n);
  }
  EXPECT_FALSE(reader.next(chat));
}

TEST_F(Chats, LongOnesAreLeftOutOrCut) {
  const ChatTemplate chat_template = ChatTemplate::parse(kChatml, "t");
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "word ";
  const std::string file =
      folder_.write("some.jsonl", line_of("q", "a") + line_of("q", longer) + line_of(longer, "a") + line_of("r", "b"));
  PackOptions options{.files = {file}, .out = folder_.path() / "left-out", .limit = {.side = 30}};
  Packed packed = pack_chats(options, chat_template, tokenizer_);
  EXPECT_EQ(packed.too_long, 2U);
  EXPECT_EQ(packed.cut, 0U);
  EXPECT_TRUE(packed.first_too_long.starts_with(file + ", line 2 with ")) << packed.first_too_long;
  EXPECT_EQ(packed.manifest.of(Split::train).documents, 2U);
  // Where the question alone is too long, nothing is left to learn.
  options.out = folder_.path() / "cut";
  options.limit.cut = true;
  packed = pack_chats(options, chat_template, tokenizer_);
  EXPECT_EQ(packed.too_long, 1U);
  EXPECT_EQ(packed.cut, 1U);
  const PackedDataset data(options.out);
  ASSERT_EQ(data.of(Split::train).documents(), 3U);
  EXPECT_EQ(data.of(Split::train).length(1), 30U);
}

TEST_F(Chats, DeepLinesAreRefused) {
  expect_error([&] { read(kChatml, R"({"messages": )" + std::string(20000, '[') + std::string(20000, ']') + "}"); },
               {"line 1", "levels deep"});
}

// Empty lines are skipped, but they are lines of the file.
TEST_F(Chats, AnErrorNamesTheLineOfTheFile) {
  const char* good = R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})";
  folder_.write("chats.jsonl", std::string("\n \n") + good + "\n\r\n\n{\"messages\": []}\n");
  const ChatTemplate chat_template = ChatTemplate::parse(kChatml, "t");
  ChatReader reader({(folder_.path() / "chats.jsonl").string()}, chat_template, tokenizer_);
  Chat chat;
  EXPECT_TRUE(reader.next(chat));
  expect_error([&] { reader.next(chat); }, {"chats.jsonl, line 6", "is no conversation"});
}

}  // namespace
}  // namespace qkv

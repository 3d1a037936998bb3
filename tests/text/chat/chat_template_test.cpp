// Chat templates against renderings of python3-jinja2 (scripts/make_chat_vectors.py), byte for byte.
#include "text/chat/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/sha256.h"
#include "base/temp_folder.h"
#include "text/chat/chat_support.h"

namespace qkv {
namespace {

using test::chat_input;

// Our rendering, or null if it is an Error.
OrderedJson outcome(const ChatTemplate& chat, const ChatTemplate::Input& input) {
  try {
    return chat.render(input);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input) << error.what();
    return nullptr;
  }
}

OrderedJson outcome(std::string_view source, ChatTemplate::Input input) {
  input.more["bos_token"] = "<s>";
  input.more["eos_token"] = "</s>";
  try {
    return outcome(ChatTemplate::parse(source, "test.jinja"), input);
  } catch (const Error&) {
    return nullptr;
  }
}

TEST(ChatTemplate, RendersAsPythonDoes) {
  const OrderedJson conversations = test::chat_json("conversations.json"), expected = test::chat_json("expected.json");
  const auto templates = test::chat_templates();
  ASSERT_EQ(templates.size(), 94U);
  ASSERT_EQ(conversations.size(), 21U);
  size_t rendered = 0;
  for (const auto& [name, source] : templates) {
    size_t index = 0;
    for (const auto& [title, conversation] : conversations.items()) {
      const OrderedJson& right = expected["templates"][name][index++];
      EXPECT_EQ(outcome(source, chat_input(conversation)), right) << name << " of " << title;
      if (right.is_string()) ++rendered;
    }
  }
  EXPECT_EQ(rendered, 1894U);
}

TEST(ChatTemplate, ExpressionsAreAsInPython) {
  const OrderedJson conversations = test::chat_json("conversations.json"), expected = test::chat_json("expected.json");
  const ChatTemplate::Input input = chat_input(conversations["values"]);
  const std::string lines = test::chat_file("expressions.txt");
  size_t index = 0;
  for (size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != lines.npos; begin = end + 1) {
    const std::string line = lines.substr(begin, end - begin);
    EXPECT_EQ(outcome(line, input), expected["expressions"][index++]) << line;
  }
  EXPECT_EQ(index, expected["expressions"].size());
}

class RealTemplates : public testing::TestWithParam<const char*> {};
TEST_P(RealTemplates, RenderAsInPython) {
  QKV_NEED_SHARED(folder, std::string("tokenizers/real/") + GetParam());
  const auto chat = ChatTemplate::load(folder);
  ASSERT_TRUE(chat);
  const OrderedJson expected = test::chat_json("real.json")[GetParam()];
  const OrderedJson conversations = test::chat_json("conversations.json");
  size_t index = 0;
  for (const auto& [title, conversation] : conversations.items()) {
    const OrderedJson got = outcome(*chat, chat_input(conversation));
    const OrderedJson& right = expected[index++];
    ASSERT_EQ(got.is_null(), right.is_null()) << title;
    if (got.is_null()) continue;
    const auto& text = got.get_ref<const std::string&>();
    EXPECT_EQ(sha256_hex(std::as_bytes(std::span(text))), right.get<std::string>()) << title << "\n" << text;
  }
  EXPECT_EQ(index, 21U);
}
INSTANTIATE_TEST_SUITE_P(ChatTemplate, RealTemplates, testing::Values("deepseek_v3", "llama3", "qwen2_5", "qwen3"));

class ChatFolder : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) { folder_.write(name, text); }
  std::string rendered() { return ChatTemplate::load(path_)->render({.messages = messages_json({{"user", "你好"}})}); }

  TempFolder folder_;
  const std::filesystem::path path_ = folder_.path();
};

TEST_F(ChatFolder, TakesTheTemplateWhereverItStands) {
  EXPECT_FALSE(ChatTemplate::load(path_));
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_FALSE(ChatTemplate::load(path_));
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
    "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token is defined }}"})");
  EXPECT_EQ(rendered(), "<s>你好</s>False");
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template":
    [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "{{ bos_token }}d"}]})");
  EXPECT_EQ(rendered(), "<s>d");
  write("chat_template.jinja", "{{ bos_token }}file{{ tools is none }}\n");
  EXPECT_EQ(rendered(), "<s>fileTrue");
}

TEST_F(ChatFolder, SaysWhatIsWrong) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"}]})");
  EXPECT_THROW(ChatTemplate::load(path_), Error);
  write("tokenizer_config.json", R"({"chat_template": 3})");
  EXPECT_THROW(ChatTemplate::load(path_), Error);
  write("tokenizer_config.json", R"({"chat_template": "\n\n{% if %}"})");
  try {
    ChatTemplate::load(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("tokenizer_config.json: chat template line 3: "), std::string::npos)
        << error.message();
  }
  EXPECT_THROW(ChatTemplate::load(path_ / "nothing"), Error);
  EXPECT_THROW(ChatTemplate::fail_missing(path_), Error);
}

// Puts the mark at both ends of every string.
void put_around(OrderedJson& value, const std::string& mark) {
  if (value.is_string()) value = mark + value.get<std::string>() + mark;
  if (!value.is_structured()) return;
  for (OrderedJson& below : value) put_around(below, mark);
}

// Whatever a template does with messages, their text is known as theirs: a character that only they hold is always
// marked. What the template writes itself is never marked.
TEST(ChatTemplate, KnowsWhichTextIsTheMessages) {
  const std::string mark = "\xee\x80\x80";  // U+E000
  const OrderedJson conversations = test::chat_json("conversations.json");
  auto sources = test::chat_templates();
  const std::string lines = test::chat_file("expressions.txt");
  for (size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != lines.npos; begin = end + 1) {
    sources.emplace_back("expression", lines.substr(begin, end - begin));
  }
  size_t seen = 0;
  for (const auto& [name, source] : sources) {
    for (const char* title : {"system", "two_calls", "thinking", "parts", "documents", "values", "tools"}) {
      ChatTemplate::Input input = chat_input(conversations[title]);
      for (OrderedJson& message : input.messages) {
        for (auto& [key, value] : message.items()) {
          if (key != "role") put_around(value, mark);
        }
      }
      put_around(input.more, mark);
      MarkedText text;
      try {
        text = ChatTemplate::parse(source, "test.jinja").render_marked(input);
      } catch (const Error&) {
        continue;
      }
      for (size_t at = 0; (at = text.bytes().find(mark, at)) != std::string::npos; at += mark.size(), ++seen) {
        for (size_t i = at; i < at + mark.size(); ++i) {
          ASSERT_NE(text.origin(i), MarkedText::kTemplate) << name << " of " << title << ": " << text.bytes();
        }
      }
    }
  }
  EXPECT_GT(seen, 3000U);
  const ChatTemplate::Input plain{.messages = messages_json({{"user", "x"}})};
  const MarkedText own =
      ChatTemplate::parse("<a>{{ messages[0].role|upper }}{{ messages|length }}</a>", "t").render_marked(plain);
  EXPECT_FALSE(own.has_marks()) << own.bytes();
}

TEST(ChatTemplate, GenerationMarksWhatTheAssistantWrites) {
  const MarkedText text =
      ChatTemplate::parse(
          "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}.{% endgeneration %};{% endfor %}",
          "test.jinja")
          .render_marked({.messages = messages_json({{"user", "ab"}, {"assistant", "c"}})});
  EXPECT_EQ(text.bytes(), "<user>ab.;<assistant>c.;");
  std::string generated;
  for (size_t i = 0; i < text.size(); ++i) generated += text.is_generated(i) ? text.bytes()[i] : '_';
  EXPECT_EQ(generated, "______ab.____________c._");
  EXPECT_EQ(text.end_of_generated(6), 9U);
  EXPECT_EQ(text.end_of_generated(0), 6U);
}

TEST(ChatTemplate, WritesTheDate) {
  ChatTemplate::Input input{.messages = OrderedJson::array(), .now = 1'700'000'000};  // 14 or 15 November 2023
  EXPECT_EQ(test::render("{{ strftime_now('%B %Y') }}|{{ strftime_now('') }}", input), "November 2023|");
}

TEST(ChatTemplate, MessagesKeepTheOrderOfTheirKeys) {
  const OrderedJson parsed = parse_ordered_json(R"([{"z": 1, "a": {"y": null, "b": [true, 1.5]}}])", "test");
  EXPECT_EQ(test::render("{{ messages[0] | tojson }}", {.messages = parsed}),
            R"({"z": 1, "a": {"y": null, "b": [true, 1.5]}})");
  EXPECT_THROW(parse_ordered_json(R"({"a": 1, "b": {"c": 1, "c": 2}})", "test"), Error);
  EXPECT_EQ(parse_ordered_json("3", "test"), 3);
}

}  // namespace
}  // namespace qkv

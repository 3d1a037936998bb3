#include "text/tokenizer/stream_decoder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "support/pass.h"
#include "text/tokenizer/display_spans.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

std::string repaired(std::string text) {
  return take_utf8(text, MoreBytes::no);
}

struct Streamed {
  std::string text;
  bool whole = true;  // each part was valid UTF-8
};

Streamed stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, DecodeOptions options) {
  Streamed out;
  StreamDecoder decoder(tokenizer, options);
  const auto put = [&](const std::string& part) {
    out.whole = out.whole && is_utf8(part);
    out.text += part;
  };
  for (const int32_t id : ids) put(decoder.add(id));
  put(decoder.flush());
  return out;
}

// Spans must cover the tokens and the text in order, without splitting a glyph.
void check_spans(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, const std::string& text) {
  const DisplaySpans spans = display_spans(tokenizer, ids);
  ASSERT_EQ(spans.text, text);
  ASSERT_EQ(spans.span_of.size(), ids.size());
  size_t token = 0, byte = 0;
  for (size_t i = 0; i < spans.spans.size(); ++i) {
    const DisplaySpan& span = spans.spans[i];
    ASSERT_EQ(span.first_token, token);
    ASSERT_EQ(span.begin, byte);
    ASSERT_EQ(span.text, text.substr(span.begin, span.end - span.begin));
    ASSERT_TRUE(is_utf8(span.text));
    for (size_t n = 0; n < span.token_count; ++n, ++token) {
      ASSERT_EQ(spans.span_of[token], i);
      ASSERT_EQ(spans.continues(token), n > 0);
    }
    byte = span.end;
  }
  ASSERT_EQ(token, ids.size());
  ASSERT_EQ(byte, text.size());
}

void check_ids(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const bool skip : {false, true}) {
    const std::string right = repaired(tokenizer.decode(ids, {.skip_specials = skip}));
    const Streamed streamed = stream(tokenizer, ids, {.skip_specials = skip});
    ASSERT_EQ(streamed.text, right);
    ASSERT_TRUE(streamed.whole);
  }
  check_spans(tokenizer, ids, repaired(tokenizer.decode(ids)));
}

// Encoded ids, complete and truncated, and random ids: a model may generate anything.
void check_tokenizer(const Tokenizer& tokenizer, const Json& vectors) {
  const size_t step = vectors.size() > 300 ? 5 : 1;
  for (size_t i = 0; i < vectors.size(); i += step) {
    const std::vector<int32_t> ids = tokenizer.encode(vectors[i].at("text").get_ref<const std::string&>());
    SCOPED_TRACE(vectors[i].at("text").dump());
    check_ids(tokenizer, ids);
    const size_t cut = ids.empty() ? 0 : i * 7 % ids.size();
    check_ids(tokenizer, {ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end()});
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_TRUE(rc::check([&] {
    auto ids = *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange(0, tokenizer.vocab_size()));
    std::erase_if(ids, [&](int32_t id) { return !tokenizer.has(id); });
    // In most vocabularies small ids are bytes and letters.
    const auto low =
        *rc::gen::container<std::vector<int32_t>>(rc::gen::inRange(0, std::min(260, tokenizer.vocab_size())));
    ids.insert(ids.end(), low.begin(), low.end());
    std::erase_if(ids, [&](int32_t id) { return !tokenizer.has(id); });
    check_ids(tokenizer, ids);
    RC_ASSERT(!testing::Test::HasFatalFailure());
  }));
}

class Streams : public testing::TestWithParam<const char*> {};

TEST_P(Streams, GiveWhatTheWholeListGives) {
  QKV_NEED_SHARED(file, std::string("tokenizers/") + GetParam());
  const Tokenizer tokenizer = Tokenizer::load(file);
  check_tokenizer(tokenizer, parse_json(read_file(file.parent_path() / "vectors.json", 10'000'000), "vectors.json",
                                        {.tree = 1 << 30}));
}

INSTANTIATE_TEST_SUITE_P(
    All, Streams,
    testing::Values("small/gpt2/tokenizer.json", "small/llama2/tokenizer.json", "small/unigram/tokenizer.json",
                    "small/wordpiece/tokenizer.json", "real/bert-uncased/tokenizer.json", "real/gpt2/tokenizer.json",
                    "sentencepiece/bpe/tokenizer.model", "sentencepiece/llama2-bpe/tokenizer.model",
                    "sentencepiece/t5-unigram/tokenizer.model", "sentencepiece/unigram-bytefallback/tokenizer.model"),
    [](const auto& parameter) {
      std::string name = parameter.param;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

TEST(StreamDecoder, Stories260KComesOutWordForWord) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::string page = read_file(folder / "EXPECTED.md", 100'000);
  const size_t begin = page.find("Once upon"), list = page.find("The 160 ids after <s>: ");
  ASSERT_NE(begin, page.npos);
  ASSERT_NE(list, page.npos);
  const std::string story = page.substr(begin, page.find_last_not_of("\n", list - 1) + 1 - begin);
  std::vector<int32_t> ids;
  std::istringstream numbers(page.substr(list + 23));
  for (int32_t id = 0; numbers >> id;) ids.push_back(id);
  ASSERT_EQ(ids.size(), 160U);
  // The page shows the story beyond its first 160 tokens.
  const std::string text = tokenizer.decode(ids);
  EXPECT_EQ(text, story.substr(0, text.size()));
  EXPECT_TRUE(text.ends_with("She said, \"I'm s")) << text;
  EXPECT_EQ(stream(tokenizer, ids, {}).text, text);
}

TEST(StreamDecoder, HoldsBackHalfACharacter) {
  QKV_NEED_SHARED(file, "tokenizers/real/gpt2/tokenizer.json");
  const Tokenizer tokenizer = Tokenizer::load(file);
  const std::vector<int32_t> ids = tokenizer.encode("a\xf0\x9f\x8e\x89z");  // the emoji is three tokens of GPT-2
  ASSERT_GT(ids.size(), 3U);
  StreamDecoder decoder(tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(decoder.add(id));
  EXPECT_EQ(parts.front(), "a");
  for (size_t i = 1; i + 2 < parts.size(); ++i) EXPECT_EQ(parts[i], "");
  EXPECT_EQ(parts[parts.size() - 2], "\xf0\x9f\x8e\x89");
  EXPECT_EQ(parts.back(), "z");
  EXPECT_EQ(decoder.flush(), "");

  StreamDecoder broken(tokenizer);
  std::string text;
  for (size_t i = 0; i + 2 < ids.size(); ++i) text += broken.add(ids[i]);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(broken.flush(), "\ufffd");
  expect_error([&] { StreamDecoder(tokenizer).add(1'000'000); }, {"no token has the id 1000000"});
}

TEST(DisplaySpans, ShowGlyphsWhole) {
  QKV_NEED_SHARED(file, "tokenizers/real/gpt2/tokenizer.json");
  const Tokenizer tokenizer = Tokenizer::load(file);
  const DisplaySpans spans = display_spans(tokenizer, tokenizer.encode("Hi 程👍🏽!"));
  std::vector<std::string> texts;
  for (const DisplaySpan& span : spans.spans) texts.push_back(span.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"Hi", " 程", "👍🏽", "!"}));
  EXPECT_GT(spans.spans[1].token_count, 1U);
  EXPECT_GT(spans.spans[2].token_count, 2U);
  EXPECT_FALSE(spans.continues(0));
  EXPECT_FALSE(spans.continues(1));
  EXPECT_TRUE(spans.continues(2));
}

// Characters of several byte tokens, with other tokens between them.
TEST(DisplaySpans, EachRunOfBytesHasTokensOfItsOwn) {
  const Tokenizer tokenizer = Tokenizer::load(test::golden("tokenizers/llama2"));
  const std::vector<int32_t> ids = tokenizer.encode("a猫猫b猫c", {.add_specials = false});
  check_spans(tokenizer, ids, tokenizer.decode(ids));
  std::vector<std::pair<std::string, size_t>> spans;
  for (const DisplaySpan& span : display_spans(tokenizer, ids).spans) spans.emplace_back(span.text, span.token_count);
  ASSERT_EQ(spans.size(), 6U);
  spans.front().first = "a";  // a space may stand before it
  EXPECT_EQ(spans, (std::vector<std::pair<std::string, size_t>>{
                       {"a", 1}, {"猫", 3}, {"猫", 3}, {"b", 1}, {"猫", 3}, {"c", 1}}));
}

TEST(TakeUtf8, OneReplacementForEachBrokenSequence) {
  // As Unicode recommends and Rust's from_utf8_lossy does.
  EXPECT_EQ(repaired("Hello \xf0\x90\x80World"), "Hello \ufffdWorld");
  EXPECT_EQ(repaired("\xe4\xbd"), "\ufffd");
  EXPECT_EQ(repaired("\xe4\xbd\xe4\xbd\xa0"), "\ufffd你");
  EXPECT_EQ(repaired("\xff\xfe"), "\ufffd\ufffd");
  EXPECT_EQ(repaired("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(repaired("\xc0\x80\xf8"), "\ufffd\ufffd\ufffd");
  std::string bytes = "ab\xe4\xbd";
  EXPECT_EQ(take_utf8(bytes, MoreBytes::may_follow), "ab");
  EXPECT_EQ(bytes, "\xe4\xbd");
  bytes += "\xa0!";
  EXPECT_EQ(take_utf8(bytes, MoreBytes::may_follow), "你!");
  bytes = "\xe4\xff";
  EXPECT_EQ(take_utf8(bytes, MoreBytes::may_follow), "\ufffd\ufffd");
}

}  // namespace
}  // namespace qkv

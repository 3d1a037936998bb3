// Random texts under a constraint: always valid, never stuck, and each mask is what trying every token gives.
#include "infer/grammar/constraint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/expect_error.h"
#include "base/json.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar_texts.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

using grammar::schema_grammar;
using grammar::TokenMasks;
using grammar::TokenTrie;
using grammar::TokenTriePtr;

constexpr int32_t kEnd = 0;

// A vocabulary of all bytes, and of pieces that cross the borders of values; id 0 is the end token.
TokenTriePtr small_vocabulary() {
  std::vector<std::string> bytes{""};
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
  for (const char* piece : {"{\"",      "\":",       "\": ",       "\",\"",     "\", \"",    "\"}",
                            "\"},",     "}}",        "]]",         "[[",        "{}",        "[]",
                            ", ",       ",\"",       ":\"",        ":[",        ":{\"",      "null",
                            "true",     "false",     "\":true,\"", "a\":1,\"a", "ab",        "name",
                            "na",       "\"name\":", "12",         "100",       "0.",        ".5",
                            "e+",       "-1",        "\n  ",       ",\n    ",   "  ",        " \"",
                            "\\n",      "\\\"",      "\"\"",       "\":{}",     "\":[]",     "\xe4\xb8\xad",
                            "\xe4\xb8", "\xad\"",    "\xf0\x9f",   "zz\"",      "\",\"a\":", "{\"a\":{\"a\":{\"a\":",
                            "[[[[[[[["}) {
    bytes.emplace_back(piece);
  }
  return std::make_shared<const TokenTrie>(std::move(bytes));
}

const std::vector<std::string>& walked_schemas() {
  static const std::vector<std::string> schemas{
      "{}",
      R"({"type":"object"})",
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"na":{"type":"integer","minimum":-5,"maximum":1200}},
          "required":["na"],"additionalProperties":{"type":["boolean","null"]}})",
      R"({"type":"array","items":{"enum":["a","ab","name",1,12,100,null]},"uniqueItems":true,"minItems":3})",
      R"({"type":"array","items":{"type":"number","minimum":-1.25,"exclusiveMaximum":100.5},"minItems":2,"maxItems":5})",
      R"({"type":"string","pattern":"^[^a-y]{0,3}(ab|\\n|\")+z?$","maxLength":20})",
      R"({"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"}}},{"type":"object","properties":{"a":{"type":"null"},"b":{}},"required":["b"]},
          {"type":"array","items":{"$ref":"#"},"maxItems":2},{"type":"string","format":"date"}]})",
      R"({"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer","multipleOf":7},"c":{"type":"array","items":{"$ref":"#/$defs/t"}}},
          "required":["v","c"],"additionalProperties":false}},"$ref":"#/$defs/t"})",
      R"({"type":"object","additionalProperties":{"enum":[1,12]},"minProperties":2,"maxProperties":4})"};
  return schemas;
}

struct Walk {
  std::string text;
  bool ended = false;
};

// Random tokens among those allowed. After `most` of them closing ones are preferred.
template <class Look>
Walk random_walk(Constraint constraint, const TokenTrie& trie, uint32_t seed, int most, Look look) {
  std::mt19937 random(seed);
  Walk walk;
  std::vector<float> logits(trie.vocabulary());
  for (int step = 0; step < most + 400; ++step) {
    look(constraint, walk.text);
    for (float& x : logits) x = static_cast<float>(random() % 1000) / 100.F;
    if (step >= most) {
      for (size_t id = 0; id < logits.size(); ++id) {
        const std::string_view bytes = trie.bytes(static_cast<int32_t>(id));
        if (bytes.empty() || bytes == "\"" || bytes == "}" || bytes == "]") logits[id] += 100;
      }
    }
    constraint.mask(logits);
    const auto best = std::max_element(logits.begin(), logits.end());
    if (std::isinf(*best)) {
      ADD_FAILURE() << "nothing is allowed after " << walk.text;
      return walk;
    }
    const auto id = static_cast<int32_t>(best - logits.begin());
    constraint.accept(id);
    if (id == kEnd) {
      walk.ended = true;
      EXPECT_TRUE(constraint.finished());
      return walk;
    }
    walk.text += trie.bytes(id);
  }
  return walk;
}

TEST(Constraint, RandomTextsAreWholeValues) {
  const TokenTriePtr trie = small_vocabulary();
  int ended = 0;
  for (const std::string& schema : walked_schemas()) {
    const grammar::GrammarPtr compiled = schema_grammar(schema, "schema");
    const Constraint start(std::make_shared<const TokenMasks>(compiled, trie), {kEnd});
    for (uint32_t seed = 0; seed < 60; ++seed) {
      const Walk walk = random_walk(start, *trie, seed, 60, [](auto&&...) {});
      EXPECT_TRUE(walk.ended) << schema << "\n" << walk.text;
      ended += walk.ended ? 1 : 0;
      EXPECT_TRUE(test::accepts(*compiled, walk.text)) << schema << "\n" << walk.text;
      // parse_json refuses a key that appears twice, text that is not UTF-8 and numbers that are not finite.
      EXPECT_NO_THROW(parse_json(walk.text, "the text", {.depth = 64})) << schema << "\n" << walk.text;
    }
  }
  EXPECT_EQ(ended, 60 * static_cast<int>(walked_schemas().size()));
}

TEST(Constraint, MasksAreWhatTryingEveryTokenGives) {
  const TokenTriePtr trie = small_vocabulary();
  const grammar::Parser* parser = nullptr;
  for (const std::string& schema : walked_schemas()) {
    const grammar::GrammarPtr compiled = schema_grammar(schema, "schema");
    const auto masks = std::make_shared<const TokenMasks>(compiled, trie);
    parser = &masks->parser();
    int64_t looked = 0;
    const auto look = [&](Constraint& constraint, const std::string& text) {
      grammar::ParseStore store;
      grammar::Ways now, next;
      parser->start(store, now);
      const auto feed = [&](grammar::Ways& ways, std::string_view bytes) {
        for (const char c : bytes) {
          next.clear();
          parser->step(store, ways.frames, static_cast<uint8_t>(c), next);
          std::swap(ways, next);
        }
      };
      feed(now, text);
      for (size_t id = 0; id < trie->vocabulary(); ++id) {
        const std::string_view bytes = trie->bytes(static_cast<int32_t>(id));
        grammar::Ways after = now;
        feed(after, bytes);
        const bool right = bytes.empty() ? now.complete : !after.dead();
        ASSERT_EQ(constraint.allowed().has(id), right) << schema << "\n" << text << " + " << bytes;
      }
      ++looked;
    };
    for (uint32_t seed = 0; seed < 12; ++seed) random_walk(Constraint(masks, {kEnd}), *trie, seed, 40, look);
    EXPECT_GT(looked, 30) << schema;
  }
}

// Deep texts: the masks kept for states do not know the depth.
TEST(Constraint, MasksHoldAtTheLimitOfNesting) {
  const TokenTriePtr trie = small_vocabulary();
  const grammar::GrammarPtr compiled = schema_grammar(R"({"type":"array","items":{"$ref":"#"}})", "schema");
  Constraint constraint(std::make_shared<const TokenMasks>(compiled, trie), {kEnd});
  const auto id_of = [&](std::string_view bytes) {
    size_t id = 0;
    while (trie->bytes(static_cast<int32_t>(id)) != bytes) ++id;
    return id;
  };
  const size_t one = id_of("["), eight = id_of("[[[[[[[["), close = id_of("]");
  for (int depth = 0; depth < 64; ++depth) {
    ASSERT_TRUE(constraint.allowed().has(one)) << depth;
    ASSERT_EQ(constraint.allowed().has(eight), depth + 8 <= 64) << depth;
    constraint.accept(static_cast<int32_t>(one));
  }
  EXPECT_FALSE(constraint.allowed().has(one));
  EXPECT_TRUE(constraint.allowed().has(close));
}

TEST(Constraint, EndsWhereTheValueIsComplete) {
  const TokenTriePtr trie = small_vocabulary();
  const auto masks =
      std::make_shared<const TokenMasks>(schema_grammar(R"({"type":"integer","maximum":12})", "s"), trie);
  Constraint constraint(masks, {kEnd});
  const auto byte = [](char c) { return static_cast<int32_t>(static_cast<uint8_t>(c)) + 1; };
  EXPECT_FALSE(constraint.complete());
  EXPECT_FALSE(constraint.allowed().has(kEnd));
  constraint.accept(byte('1'));
  EXPECT_TRUE(constraint.complete());
  EXPECT_FALSE(constraint.finished()) << "another digit may follow";
  EXPECT_TRUE(constraint.allowed().has(kEnd));
  Constraint other = constraint;  // copies go their own ways
  constraint.accept(byte('2'));
  EXPECT_TRUE(constraint.finished());
  grammar::TokenSet only(trie->vocabulary());
  only.add(kEnd);
  EXPECT_EQ(constraint.allowed(), only);
  EXPECT_FALSE(other.finished());
  expect_error([&] { other.accept(byte('3')); }, {"does not fit the schema"});
  // An end token with bytes of its own ends the text only where it is complete.
  Constraint by_digit(masks, {byte('1')});
  EXPECT_FALSE(by_digit.allowed().has(static_cast<size_t>(byte('1'))));
  // Without an end token the text is simply finished.
  Constraint endless(masks, {});
  endless.accept(byte('1'));
  endless.accept(byte('2'));
  EXPECT_TRUE(endless.finished());
  EXPECT_TRUE(endless.allowed().none());
}

TEST(Constraint, LongTextsKeepNamesAndForgetTheRest) {
  const TokenTriePtr trie = small_vocabulary();
  const grammar::GrammarPtr compiled =
      schema_grammar(R"({"type":"object","additionalProperties":{"type":"string"}})", "s");
  Constraint constraint(std::make_shared<const TokenMasks>(compiled, trie), {kEnd});
  const auto say = [&](std::string_view text) {
    for (const char c : text) constraint.accept(static_cast<int32_t>(static_cast<uint8_t>(c)) + 1);
  };
  say("{\"key\":\"\"");
  for (int i = 0; i < 2000; ++i) say(",\"k" + std::to_string(i) + "\":\"some text\"");
  say(",\"key");
  EXPECT_FALSE(constraint.allowed().has('"' + 1)) << "the name of the first property again";
  say("s\":\"\",\"k1999");
  EXPECT_FALSE(constraint.allowed().has('"' + 1));
  say("9\":\"\"}");
  EXPECT_TRUE(constraint.finished());
}

TEST(Constraint, AVocabularyThatCannotGoOnIsAnError) {
  const auto trie = std::make_shared<const TokenTrie>(std::vector<std::string>{"", "1"});
  Constraint constraint(std::make_shared<const TokenMasks>(schema_grammar(R"({"enum":[12]})", "s"), trie), {kEnd});
  constraint.accept(1);
  expect_error([&] { constraint.allowed(); }, {"no token of the vocabulary"});
}

// Many ways to read a text at once, each of which needs a walk along the whole vocabulary: the last are left out.
TEST(Constraint, TheWorkForOneTokenIsLimited) {
  std::vector<std::string> bytes{"", "\"", "7"};
  for (int i = 0; i < 1 << 16; ++i) {
    std::string word;
    for (int at = 12; at >= 0; at -= 4) word += static_cast<char>('a' + (i >> at & 15));
    bytes.push_back(std::move(word));
  }
  const auto trie = std::make_shared<const TokenTrie>(std::move(bytes));
  const auto set_behind_quote = [&](int ways, int times) {
    std::string schema = R"({"anyOf":[)";
    for (int i = 0; i < ways; ++i) {
      schema += R"({"type":"string","pattern":"^[a-p]{0,)" + std::to_string(20 + i) + R"(}$"},)";
    }
    schema += R"({"type":"string","pattern":"^7*$"}]})";
    const auto masks = std::make_shared<const TokenMasks>(schema_grammar(schema, "s"), trie);
    grammar::TokenSet set;
    for (; times > 0; --times) {
      Constraint constraint(masks, {});
      constraint.accept(1);
      set = constraint.allowed();
    }
    return set;
  };
  EXPECT_TRUE(set_behind_quote(5, 1).has(2));
  const grammar::TokenSet limited = set_behind_quote(90, 1);
  EXPECT_FALSE(limited.has(2)) << "all 91 were walked";
  EXPECT_TRUE(limited.has(1) && limited.has(1000)) << "those before them are whole";
  EXPECT_EQ(set_behind_quote(90, 2), limited) << "it depends on what is kept";
}

// Real vocabularies: what the tokenizer decodes is valid, whole characters included.
void walk_tokenizer(const std::filesystem::path& path, uint32_t texts) {
  SCOPED_TRACE(path);
  const Tokenizer tokenizer = Tokenizer::load(path);
  const TokenTriePtr trie = grammar::token_trie_of(tokenizer);
  const int32_t end = tokenizer.named().eos.value_or(0);
  for (const std::string& schema : walked_schemas()) {
    const grammar::GrammarPtr compiled = schema_grammar(schema, "schema");
    const Constraint start(std::make_shared<const TokenMasks>(compiled, trie), {end});
    for (uint32_t seed = 0; seed < texts; ++seed) {
      std::mt19937 random(seed);
      Constraint constraint = start;
      std::vector<int32_t> ids;
      std::string bytes;
      for (int step = 0; step < 1500 && !constraint.finished(); ++step) {
        const grammar::TokenSet& allowed = constraint.allowed();
        // Closing tokens come after a while: with random tokens alone texts would nest for ever.
        std::vector<int32_t> some, closing;
        for (size_t id = 0; id < trie->vocabulary(); ++id) {
          if (!allowed.has(id)) continue;
          some.push_back(static_cast<int32_t>(id));
          const std::string_view b = trie->bytes(static_cast<int32_t>(id));
          if (static_cast<int32_t>(id) == end || b == "\"" || b == "}" || b == "]")
            closing.push_back(static_cast<int32_t>(id));
        }
        ASSERT_FALSE(some.empty());
        const std::vector<int32_t>& from = step > 25 && !closing.empty() ? closing : some;
        const int32_t id = from[random() % from.size()];
        constraint.accept(id);
        if (id == end) break;
        ids.push_back(id);
        bytes += trie->bytes(id);
      }
      ASSERT_TRUE(constraint.finished()) << schema << "\n" << bytes;
      const std::string decoded = tokenizer.decode(ids);
      EXPECT_TRUE(decoded == bytes || " " + decoded == bytes) << decoded << "\n" << bytes;
      EXPECT_TRUE(test::accepts(*compiled, decoded)) << schema << "\n" << decoded;
      EXPECT_NO_THROW(parse_json(decoded, "the text", {.depth = 64})) << schema << "\n" << decoded;
    }
  }
}

TEST(Constraint, GoldenTokenizersWriteValidTexts) {
  for (const char* name : {"gpt2", "llama3", "qwen2"}) walk_tokenizer(test::golden("tokenizers") / name, 4);
}

// Byte-level BPE of 50 to 150 thousand tokens and SentencePiece with byte fallback, where they are.
TEST(Constraint, RealTokenizersWriteValidTexts) {
  QKV_NEED_SHARED(real, "tokenizers");
  for (const char* name : {"real/gpt2", "real/llama3", "real/qwen3", "real/deepseek_v3", "sentencepiece/llama2-bpe",
                           "sentencepiece/unigram-bytefallback", "real/gguf-vocab/ggml-vocab-llama-spm.gguf"}) {
    walk_tokenizer(real / name, 1);
  }
}

// Here the byte tokens are special tokens, which no text shows; in the other there are no bytes at all.
TEST(Constraint, ATokenizerThatCannotSpellJsonIsRefused) {
  for (const char* name : {"llama2", "wordpiece"}) {
    expect_error([&] { grammar::token_trie_of(Tokenizer::load(test::golden("tokenizers") / name)); }, {"no token is"});
  }
}

}  // namespace
}  // namespace qkv

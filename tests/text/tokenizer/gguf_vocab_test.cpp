// Vocabularies of GGUF files as llama.cpp's converters write them, against the tokenizer.json they come from.
#include <gtest/gtest.h>

#include <map>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "text/tokenizer/files/gguf_pre.h"
#include "text/tokenizer/gguf_bytes.h"
#include "text/tokenizer/tokenizer_support.h"

namespace qkv {
namespace {

using test::GgufBytes;
using test::golden_tokenizer;
using test::golden_tokenizer_json;

enum MarkedType : int32_t { kIsNormal = 1, kIsUnknown = 2, kIsControl = 3, kIsUnused = 5, kIsByte = 6 };

struct MadeVocab {
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;
  std::vector<int32_t> types;

  explicit MadeVocab(const Json& json) {
    const Json& model = json.at("model");
    size_t size = 0;
    const auto set = [&](size_t id, const std::string& text, int32_t type) {
      size = std::max(size, id + 1);
      tokens.resize(size);
      types.resize(size, kIsNormal);
      tokens[id] = text;
      types[id] = type;
    };
    for (const auto& [text, id] : model.at("vocab").items()) set(id.get<size_t>(), text, kIsNormal);
    for (const Json& added : json.at("added_tokens")) {
      const auto text = added.at("content").get<std::string>();
      const bool byte = text.size() == 6 && text.starts_with("<0x");
      set(added.at("id").get<size_t>(), text, byte ? kIsByte : text == "<unk>" ? kIsUnknown : kIsControl);
    }
    std::map<std::string, float> made;
    for (const Json& merge : model.at("merges")) {
      const auto left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
      made.try_emplace(left + right, -static_cast<float>(merges.size()));
      merges.push_back(left + " " + right);
    }
    for (size_t i = 0; i < size; ++i) {
      const auto at = made.find(tokens[i]);
      scores.push_back(at != made.end() ? at->second : types[i] == kIsNormal ? -1e4F : 0);
    }
  }

  GgufBytes file(std::string_view model) const {
    GgufBytes out;
    const auto views = [](const std::vector<std::string>& texts) {
      return std::vector<std::string_view>(texts.begin(), texts.end());
    };
    out.text("tokenizer.ggml.model", model);
    out.texts("tokenizer.ggml.tokens", views(tokens));
    out.integers("tokenizer.ggml.token_type", types);
    if (model == "llama") {
      out.floats("tokenizer.ggml.scores", scores);
      out.integer("tokenizer.ggml.bos_token_id", 1);
      out.integer("tokenizer.ggml.eos_token_id", 2);
    } else {
      out.texts("tokenizer.ggml.merges", views(merges));
    }
    return out;
  }
};

Tokenizer loaded(const GgufBytes& bytes) {
  const TempFolder temp;
  return Tokenizer::load(temp.write("v.gguf", bytes.bytes()));
}

// Ids of the recorded texts, but for those that `skip` leaves out; the number that were compared.
size_t expect_recorded_ids(const Tokenizer& tokenizer, const std::string& name, bool (*skip)(const std::string& text)) {
  size_t compared = 0;
  const std::string file = test::golden("tokenizers/" + name + "/vectors.json").string();
  for (const Json& one : parse_json(read_file(file, 1 << 24), file)) {
    const auto text = one.at("text").get<std::string>();
    if (skip(text)) continue;
    EXPECT_EQ(Json(tokenizer.encode(text, {.add_specials = false})), one.at("ids")) << text;
    ++compared;
  }
  return compared;
}

bool none_skipped(const std::string&) {
  return false;
}

// Llama 2, Mistral, TinyLlama and Phi-3 files differ in how they mark <unk> and the pads after the vocabulary.
TEST(GgufSentencePiece, HasOneUnknownTokenHoweverItIsMarked) {
  const MadeVocab made(golden_tokenizer_json("llama2"));
  const auto with = [&](int32_t unk, int32_t pads, bool named) {
    MadeVocab vocab = made;
    vocab.types[0] = unk;
    for (int i = 0; i < 3 && pads > 0; ++i) {
      vocab.tokens.push_back("[PAD" + std::to_string(i) + "]");
      vocab.types.push_back(pads);
      vocab.scores.push_back(-1000);
    }
    GgufBytes file = vocab.file("llama");
    if (named) file.integer("tokenizer.ggml.unknown_token_id", 0);
    return loaded(file);
  };
  const struct {
    int32_t unk, pads;
    bool named;
  } kFiles[] = {{kIsUnknown, 0, false},         {kIsControl, 0, true},         {kIsControl, 0, false},
                {kIsControl, kIsUnused, true},  {kIsUnknown, kIsUnused, true}, {kIsUnknown, kIsUnknown, true},
                {kIsControl, kIsUnknown, true}, {kIsNormal, kIsUnused, true}};
  for (const auto& [unk, pads, named] : kFiles) {
    SCOPED_TRACE(testing::Message() << unk << ' ' << pads << ' ' << named);
    const Tokenizer tokenizer = with(unk, pads, named);
    EXPECT_EQ(expect_recorded_ids(tokenizer, "llama2",
                                  [](const std::string& text) { return text.find("<unk>") != text.npos; }),
              179U);
    EXPECT_EQ(tokenizer.encode("a").front(), 1);
  }
}

TEST(GgufBpe, AgreesWithTheTokenizerItCameFrom) {
  const struct {
    const char* golden;
    std::vector<const char*> names;
  } kFiles[] = {
      {"gpt2", {"gpt-2", "phi-2", "jina-v2-code", "roberta-bpe", "modern-bert", "exaone4", "mpt", "olmo", "jais"}},
      {"llama3", {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2", "dbrx", "smaug-bpe", "glm4"}},
      {"qwen2", {"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "solar-open"}},
  };
  for (const auto& [golden, names] : kFiles) {
    const MadeVocab made(golden_tokenizer_json(golden));
    for (const char* name : names) {
      SCOPED_TRACE(name);
      GgufBytes file = made.file("gpt2");
      file.text("tokenizer.ggml.pre", name);
      // Qwen2's tokenizer.json also composes characters (NFC), which llama.cpp does not.
      const auto composes = [](const std::string& text) { return text.find("\xcc\x81") != text.npos; };
      EXPECT_GT(expect_recorded_ids(loaded(file), golden, golden == std::string("qwen2") ? +composes : none_skipped),
                170U);
    }
  }
}

std::vector<std::string> pieces_of(std::string_view pre, std::string_view text) {
  std::vector<std::string> out;
  const PreTokenizerPtr cut = gguf_pre_tokenizer(find_gguf_pre(pre).value(), "test");
  cut->split(TextPiece{.text = text}, [&](const TextPiece& piece) { out.emplace_back(piece.text); });
  return out;
}

TEST(GgufPre, CutsAsTheModelsDo) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces_of("default", "Hello, world's 12345!"),
            (Pieces{"Hello", ",", " world", "'", "s", " ", "123", "45", "!"}));
  for (const char* name : {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"}) {
    EXPECT_EQ(pieces_of(name, "a 123 b's"), (Pieces{"a", " ", "1", "2", "3", " b", "'s"})) << name;
  }
  EXPECT_EQ(pieces_of("gpt-2", "a 123 b's"), (Pieces{"a", " 123", " b", "'s"}));
  EXPECT_EQ(pieces_of("falcon", "x=1234 y`"), (Pieces{"x", "=", "123", "4", " y", "`"}));
  EXPECT_EQ(pieces_of("jais-2", "a       b"), (Pieces{"a", "    ", "  ", " b"}));
  EXPECT_EQ(pieces_of("llama-bpe", "a       b 1234"), (Pieces{"a", "      ", " b", " ", "123", "4"}));
  EXPECT_EQ(pieces_of("qwen35", "cafe\xcc\x81 12"), (Pieces{"cafe\xcc\x81", " ", "1", "2"}));
  EXPECT_EQ(pieces_of("qwen2", "cafe\xcc\x81 12"), (Pieces{"cafe", "\xcc\x81", " ", "1", "2"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "Hi, 世界 12\n"), (Pieces{"Hi", ",", " ", "世界", " ", "12", "\n"}));
  EXPECT_EQ(pieces_of("deepseek-coder", "if x1: 世界?\n"), (Pieces{"if", " x", "1", ":", " ", "世界", "?", "\n"}));
  EXPECT_EQ(pieces_of("bloom", "Hello, world! (x)"), (Pieces{"Hello", ",", " world", "! (", "x", ")"}));
  EXPECT_EQ(pieces_of("viking", "ab12"), (Pieces{"ab", "1", "2"}));
  EXPECT_EQ(pieces_of("tekken", "HelloWorld don't 12"), (Pieces{"Hello", "World", " don", "'t", " ", "1", "2"}));
  for (const char* name : {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}) {
    EXPECT_EQ(pieces_of(name, "HelloWorld don't 1234"), (Pieces{"Hello", "World", " don't", " ", "123", "4"})) << name;
  }
  for (const char* name : {"deepseek-v3", "hunyuan-dense", "joyai-llm"}) {
    EXPECT_EQ(pieces_of(name, "世界 1234"), (Pieces{"世界", " ", "123", "4"})) << name;
  }
}

TEST(GgufPre, EveryNameCutsAndIsFoundBack) {
  for (const std::string_view name : gguf_pre_names()) {
    const GgufPre pre = find_gguf_pre(name).value();
    EXPECT_FALSE(pieces_of(name, "Some text, 42 words.").empty()) << name;
    const std::vector<std::string> steps(pre.steps.begin(), pre.steps.end());
    const auto found = find_gguf_pre(gguf_pre_of(steps, pre.ignore_merges));
    ASSERT_TRUE(found) << name;  // what is written can be read, and means the same
    EXPECT_EQ(found->steps, pre.steps) << name;
    EXPECT_EQ(found->ignore_merges, pre.ignore_merges) << name;
  }
  EXPECT_TRUE(find_gguf_pre("llama-bpe")->ignore_merges);
  EXPECT_FALSE(find_gguf_pre("dbrx")->ignore_merges);
  EXPECT_EQ(gguf_pre_of(std::vector<std::string>{"x"}, false), "");
}

TEST(GgufPre, OldFilesMeanTheDefaultAndUnknownNamesAreRefused) {
  const MadeVocab made(golden_tokenizer_json("gpt2"));
  EXPECT_FALSE(loaded(made.file("gpt2")).encode("12345").empty());
  GgufBytes file = made.file("gpt2");
  for (const char* name : {"kimi-k2", "superbpe", "seed-coder", "llama-bpee"}) {
    file.text("tokenizer.ggml.pre", name);
    expect_error([&] { loaded(file); }, {"tokenizer.ggml.pre is '" + std::string(name) + "'", "not known"});
  }
  const auto error = error_of([&] { loaded(file); });
  EXPECT_NE(error->hint().find("the nearest known is llama-bpe"), std::string::npos) << error->hint();
}

}  // namespace
}  // namespace qkv

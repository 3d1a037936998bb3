// tokenizer.json in GGUF: tokens, types, merges and names, against the files themselves.
#include "model/gguf/gguf_tokenizer.h"

#include "base/expect_error.h"
#include "base/json.h"
#include "io/gguf.h"
#include "model/gguf/gguf_support.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

namespace fs = std::filesystem;

struct Written {
  Gguf gguf;
  std::string note;
};

Written tokenizer_of(const fs::path& folder, int64_t vocabulary, const TempFolder& temp) {
  ModelSpec spec;
  spec.vocabulary = vocabulary;
  spec.tokens.bos = 1;
  spec.tokens.eos = {2};
  GgufMetadata metadata;
  std::string note = add_tokenizer_keys(metadata, folder, spec);
  const fs::path path = temp.path() / "tokenizer.gguf";
  write_gguf(path, metadata, {});
  return {Gguf::open(path), std::move(note)};
}

struct Small {
  const char* folder;
  const char* model;
  const char* pre;
};

TEST(GgufTokenizer, HoldsWhatTheFileSays) {
  for (const Small& small : {Small{"gpt2", "gpt2", "gpt-2"}, Small{"llama3", "gpt2", "llama-bpe"},
                             Small{"qwen2", "gpt2", "qwen2"}, Small{"llama2", "llama", "default"}}) {
    QKV_NEED_SHARED(folder, std::string("tokenizers/small/") + small.folder);
    const Json json = parse_json(contents(folder / "tokenizer.json"), "tokenizer.json");
    const TempFolder temp;
    const auto [gguf, note] = tokenizer_of(folder, 700, temp);
    EXPECT_EQ(gguf.text("tokenizer.ggml.model"), small.model);
    const bool ignores = json["model"].value("ignore_merges", false);
    EXPECT_EQ(gguf.text("tokenizer.ggml.pre"), std::string(small.folder) == "llama3" && !ignores ? "dbrx" : small.pre);
    EXPECT_EQ(note, "");
    EXPECT_EQ(gguf.integer("tokenizer.ggml.eos_token_id"), 2);
    const auto tokens = gguf.texts("tokenizer.ggml.tokens");
    const auto types = gguf.integers("tokenizer.ggml.token_type");
    ASSERT_EQ(tokens.size(), 700U);
    ASSERT_EQ(types.size(), 700U);
    for (const auto& [text, id] : json["model"]["vocab"].items()) EXPECT_EQ(tokens[id.get<size_t>()], text);
    for (const Json& added : json["added_tokens"]) {
      const auto id = added["id"].get<size_t>();
      EXPECT_EQ(tokens[id], added["content"].get<std::string>());
      EXPECT_NE(types[id], 1) << tokens[id];
    }
    EXPECT_EQ(types.back(), 5);  // no such token: padding
    EXPECT_EQ(tokens.back(), "[PAD699]");
    if (std::string(small.model) == "gpt2") {
      const auto merges = gguf.texts("tokenizer.ggml.merges");
      ASSERT_EQ(merges.size(), json["model"]["merges"].size());
      EXPECT_EQ(merges[3], json["model"]["merges"][3][0].get<std::string>() + " " +
                               json["model"]["merges"][3][1].get<std::string>());
      EXPECT_FALSE(gguf.has("tokenizer.ggml.scores"));
    } else {
      EXPECT_EQ(gguf.floats("tokenizer.ggml.scores").size(), 700U);
      EXPECT_TRUE(gguf.flag("tokenizer.ggml.add_space_prefix"));
      EXPECT_FALSE(gguf.has("tokenizer.ggml.merges"));
    }
  }
}

// The published vocabularies of llama.cpp hold the same tokens.
TEST(GgufTokenizer, RealOnesByName) {
  for (const Small& real : {Small{"gpt2", "gpt2", "gpt-2"}, Small{"llama3", "gpt2", "llama-bpe"},
                            Small{"qwen2_5", "gpt2", "qwen2"}, Small{"deepseek_v3", "gpt2", "deepseek-v3"}}) {
    QKV_NEED_SHARED(folder, std::string("tokenizers/real/") + real.folder);
    const TempFolder temp;
    EXPECT_EQ(tokenizer_of(folder, 160000, temp).gguf.text("tokenizer.ggml.pre"), real.pre) << real.folder;
  }
}

TEST(GgufTokenizer, EarlierMergesScoreHigher) {
  const TempFolder temp;
  temp.write("tokenizer.json", R"({"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
    "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "ab": 5, "abb": 6},
    "merges": ["a b", ["ab", "b"]]},
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}],
    "normalizer": {"type": "Prepend", "prepend": "x"}})");
  const auto [gguf, note] = tokenizer_of(temp.path(), 7, temp);
  EXPECT_EQ(gguf.floats("tokenizer.ggml.scores"), (std::vector<float>{0, 0, 0, -2, -2, 0, -1}));
  EXPECT_EQ(gguf.integers("tokenizer.ggml.token_type"), (std::vector<int64_t>{2, 3, 6, 1, 1, 1, 1}));
  EXPECT_EQ(gguf.integer("tokenizer.ggml.unknown_token_id"), 0);
}

TEST(GgufTokenizer, SettingsAndTemplateComeAlong) {
  const TempFolder temp;
  temp.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    "pre_tokenizer": {"type": "ByteLevel", "use_regex": true}})");
  temp.write("tokenizer_config.json", R"({"add_bos_token": true, "chat_template": "{{ 你好 }}"})");
  const auto [gguf, note] = tokenizer_of(temp.path(), 3, temp);
  EXPECT_TRUE(gguf.flag("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(gguf.text("tokenizer.chat_template"), "{{ 你好 }}");
}

TEST(GgufTokenizer, SaysWhatItCannotHold) {
  const TempFolder temp;
  EXPECT_NE(tokenizer_of("", 10, temp).note.find("no tokenizer.json"), std::string::npos);
  temp.write("tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {}}})");
  const auto [gguf, note] = tokenizer_of(temp.path(), 10, temp);
  EXPECT_NE(note.find("WordPiece"), std::string::npos);
  EXPECT_EQ(gguf.text("tokenizer.ggml.model"), "none");
  temp.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "x"}},
    {"type": "ByteLevel", "use_regex": false}]}})");
  EXPECT_NE(tokenizer_of(temp.path(), 10, temp).note.find("pattern that has no name"), std::string::npos);
}

TEST(GgufTokenizer, RefusesBrokenFiles) {
  const TempFolder temp;
  const auto refuses = [&](const char* json, std::initializer_list<std::string_view> parts) {
    temp.write("tokenizer.json", json);
    expect_error([&] { tokenizer_of(temp.path(), 3, temp); }, parts);
  };
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": 3}, "merges": []}})",
          {"token 'a' has the id 3 but the model has 3 tokens"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": -1}, "merges": []}})", {"has the id -1"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": "x"}, "merges": []}})",
          {"is no whole number"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": [], "merges": []}})", {"'vocab' must be"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": [["a"]]}})", {"must be a pair"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": ["ab"]}})", {"must be a pair"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": []}, "added_tokens": [{}]})",
          {"has no id"});
  refuses("{}", {"has no 'model'"});
  refuses("{", {"tokenizer.json"});
}

}  // namespace
}  // namespace qkv::test

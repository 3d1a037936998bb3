// tokenizer.json in GGUF: tokens, types, merges and names, against the files themselves.
#include "text/tokenizer/files/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "io/files.h"
#include "io/gguf.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::test {
namespace {

namespace fs = std::filesystem;

struct Written {
  Gguf gguf;
  std::string note;
};

Written tokenizer_of(const fs::path& folder, int64_t vocabulary, const TempFolder& temp, int32_t bos = 1,
                     int32_t eos = 2) {
  GgufMetadata metadata;
  std::string note;
  for (const std::string& line :
       add_gguf_tokenizer(metadata, folder, {.vocabulary = vocabulary, .bos = bos, .eos = {eos}})) {
    note += line + "\n";
  }
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
    EXPECT_EQ(note.find("(NFC)") != note.npos, std::string(small.folder) == "qwen2") << note;
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
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": -1}, "merges": []}})",
          {"the id of token 'a' is -1"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": "x"}, "merges": []}})",
          {"is not a whole number"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": [], "merges": []}})",
          {"model.vocab is missing or not an object"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": [["a"]]}})",
          {"is not two tokens"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": ["ab"]}})", {"is not two tokens"});
  refuses(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {}, "merges": []}, "added_tokens": [{}]})",
          {"is no whole number"});
  refuses("{}", {"has no 'model'"});
  refuses("{", {"tokenizer.json"});
}

// There and back: the folder made of the GGUF has the ids of the folder it came from.
TEST(GgufTokenizer, ComesBackFromGguf) {
  const struct {
    const char* name;
    int32_t bos, eos;
    bool plain_only = false;  // the file also normalizes (NFC, NFKC), which convert says is lost
  } kFiles[] = {{"gpt2", 5, 0}, {"llama2", 1, 2}, {"llama3", 0, 1}, {"qwen2", 5, 1, true}, {"unigram", 5, 1, true}};
  const auto is_plain = [](const std::string& text) {
    const bool ascii = std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127; });
    return ascii && text.find("  ") == text.npos && !text.starts_with(' ') && !text.ends_with(' ');
  };
  for (const auto& [name, bos, eos, plain_only] : kFiles) {
    SCOPED_TRACE(name);
    const fs::path from = golden(std::string("tokenizers/") + name);
    const TempFolder temp, back;
    const auto [gguf, note] = tokenizer_of(from, 700, temp, bos, eos);
    Notes notes;
    for (const MadeFile& made : tokenizer_files_of(gguf, notes)) back.write(made.name, made.text);
    EXPECT_TRUE(notes.empty());
    const Tokenizer right = Tokenizer::load(from), ours = Tokenizer::load(back.path());
    size_t compared = 0;
    for (const Json& one : parse_json(contents(from / "vectors.json"), "vectors.json")) {
      const auto text = one.at("text").get<std::string>();
      if (plain_only && !is_plain(text)) continue;
      EXPECT_EQ(ours.encode(text), right.encode(text)) << text;
      EXPECT_EQ(ours.decode(right.encode(text)), right.decode(right.encode(text))) << text;
      ++compared;
    }
    EXPECT_EQ(compared, plain_only ? 18U : 180U);
  }
}

TEST(GgufTokenizer, SentencePieceAloneIsEnough) {
  QKV_NEED_SHARED(folder, "tokenizers/sentencepiece");
  for (const char* name : {"llama2-bpe", "bpe", "unigram", "unigram-bytefallback", "t5-unigram"}) {
    SCOPED_TRACE(name);
    const Tokenizer right = Tokenizer::load(folder / name / "tokenizer.model");
    const TempFolder temp, alone;
    fs::copy_file(folder / name / "tokenizer.model", alone.path() / "tokenizer.model");
    const auto [gguf, note] = tokenizer_of(alone.path(), right.vocab_size() + 5, temp);
    EXPECT_NE(gguf.text("tokenizer.ggml.model"), "none") << note;
    const Tokenizer ours = Tokenizer::load(temp.path() / "tokenizer.gguf");
    for (const Json& one : parse_json(contents(folder / name / "vectors.json"), "vectors.json", {.tree = 1 << 30})) {
      const auto text = one.at("text").get<std::string>();
      EXPECT_EQ(ours.encode(text, {.add_specials = false, .read_specials = false}),
                right.encode(text, {.add_specials = false, .read_specials = false}))
          << text;
    }
  }
}

TEST(GgufTokenizer, EverythingTheSettingsSayComesAlong) {
  const TempFolder temp, back;
  Json json = parse_json(contents(golden("tokenizers/gpt2/tokenizer.json")), "tokenizer.json");
  const auto size = static_cast<int64_t>(json.at("model").at("vocab").size());
  json["added_tokens"] = Json::array();
  for (const char* token : {"<s>", "</s>", "<pad>"}) {
    json["added_tokens"].push_back(
        {{"id", size + std::ssize(json["added_tokens"])}, {"content", token}, {"special", true}});
  }
  json["normalizer"] = {{"type", "NFC"}};
  temp.write("tokenizer.json", json.dump());
  temp.write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": "<pad>",
    "add_bos_token": true, "add_eos_token": false,
    "chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})");
  temp.write("chat_template.jinja", "from its own file");
  const auto [gguf, note] = tokenizer_of(temp.path(), static_cast<int32_t>(size) + 3, temp);
  const std::string t = "tokenizer.ggml.";
  EXPECT_EQ(gguf.integer(t + "bos_token_id"), size);
  EXPECT_EQ(gguf.integer(t + "eos_token_id"), size + 1);
  EXPECT_EQ(gguf.integer(t + "padding_token_id"), size + 2);
  EXPECT_TRUE(gguf.flag(t + "add_bos_token"));
  EXPECT_FALSE(gguf.flag(t + "add_eos_token"));
  EXPECT_EQ(gguf.text("tokenizer.chat_template"), "from its own file");
  EXPECT_EQ(gguf.text("tokenizer.chat_template.tool_use"), "tools");
  EXPECT_NE(note.find("(NFC), which GGUF cannot say"), std::string::npos) << note;
  EXPECT_NE(note.find("also ends texts at 2: GGUF holds one end token, " + std::to_string(size + 1)), std::string::npos)
      << note;

  Notes notes;
  std::map<std::string, Json> files;
  for (const MadeFile& made : tokenizer_files_of(gguf, notes)) files[made.name] = parse_json(made.text, made.name);
  const Json& settings = files.at("tokenizer_config.json");
  EXPECT_EQ(settings.at("bos_token"), "<s>");
  EXPECT_EQ(settings.at("pad_token"), "<pad>");
  EXPECT_EQ(settings.at("add_bos_token"), true);
  EXPECT_EQ(settings.at("chat_template").size(), 2U);
  EXPECT_EQ(files.at("generation_config.json").at("eos_token_id"), size + 1);
  EXPECT_EQ(files.at("tokenizer.json").at("added_tokens").size(), 3U);
}

}  // namespace
}  // namespace qkv::test

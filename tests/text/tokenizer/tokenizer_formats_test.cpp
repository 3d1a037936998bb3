// Tokenizers from GGUF, tiktoken and Marian files: reference ids, and errors for damaged files.
#include <gtest/gtest.h>

#include <sstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "support/pass.h"
#include "text/tokenizer/gguf_bytes.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/sentencepiece_bytes.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

// Cases are ended by a separator line; the ids have one line per case.
class GgufVocabs : public testing::TestWithParam<const char*> {};

TEST_P(GgufVocabs, AreEqual) {
  QKV_NEED_SHARED(file, std::string("tokenizers/real/gguf-vocab/ggml-vocab-") + GetParam() + ".gguf");
  const Tokenizer tokenizer = Tokenizer::load(file);
  std::string cases = read_file(file.string() + ".inp", 1'000'000);
  std::istringstream lines(read_file(file.string() + ".out", 1'000'000));
  const std::string mark = "\n__ggml_vocab_test__\n";
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const size_t end = cases.find(mark);
    ASSERT_NE(end, cases.npos) << "case " << count;
    const std::string text = cases.substr(0, end);
    cases.erase(0, end + mark.size());
    Ids right;
    std::istringstream numbers(line);
    for (int32_t id = 0; numbers >> id;) right.push_back(id);
    EXPECT_EQ(tokenizer.encode(text, {.add_specials = false}), right) << "case " << count << ": " << text;
  }
  EXPECT_GT(count, 40U);
  EXPECT_EQ(cases.find(mark), cases.npos);
}

INSTANTIATE_TEST_SUITE_P(All, GgufVocabs, testing::Values("bert-bge", "gpt-2", "llama-spm"), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GgufVocab, PutsSpecialsAround) {
  QKV_NEED_SHARED(folder, "tokenizers/real/gguf-vocab");
  EXPECT_EQ(Tokenizer::load(folder / "ggml-vocab-llama-spm.gguf").encode("Hello"), (Ids{1, 15043}));
  EXPECT_EQ(Tokenizer::load(folder / "ggml-vocab-bert-bge.gguf").encode("Hello"), (Ids{101, 7592, 102}));
  EXPECT_EQ(Tokenizer::load(folder / "ggml-vocab-gpt-2.gguf").encode("Hello<|endoftext|>"), (Ids{15496, 50256}));
}

// The ranks of a real vocabulary, written in tiktoken's format, give the ids of its tokenizer.json.
void check_tiktoken(const char* name, const char* file_name, int32_t tokens) {
  QKV_NEED_SHARED(folder, std::string("tokenizers/real/") + name);
  const Tokenizer right = Tokenizer::load(folder / "tokenizer.json");
  std::string ranks;
  for (int32_t id = 0; id < tokens; ++id) {
    std::string bytes;
    ASSERT_TRUE(append_letters_as_bytes(right.token(id), bytes));
    ranks += test::base64(bytes) + " " + std::to_string(id) + "\n";
  }
  const TempFolder temp;
  temp.write(file_name, ranks);
  const Tokenizer tokenizer = Tokenizer::load(temp.path() / file_name);
  const Json vectors = parse_json(read_file(folder / "vectors.json", 10'000'000), "vectors.json", {.tree = 1 << 30});
  for (size_t i = 0; i < vectors.size(); i += 4) {
    const auto text = vectors[i].at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text, {.read_specials = false}),
              right.encode(text, {.add_specials = false, .read_specials = false}))
        << text;
  }
}

TEST(Tiktoken, RanksGiveTheIdsOfTokenizerJson) {
  check_tiktoken("llama3", "tokenizer.model", 128000);  // by size
}
TEST(Tiktoken, TheNameTellsThePattern) {
  check_tiktoken("gpt2", "r50k_base.tiktoken", 50256);
}

std::string all_bytes() {
  std::string out;
  for (int byte = 0; byte < 256; ++byte)
    out += test::base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
  return out;
}

TEST(Tiktoken, LowerRanksMergeFirst) {
  const TempFolder temp;
  // "aaa" is both a + aa and aa + a; the merges into "aa" come first.
  temp.write("cl100k.tiktoken", all_bytes() + test::base64("aa") + " 256\n" + test::base64("aaa") + " 257\n");
  const Tokenizer tokenizer = Tokenizer::load(temp.path() / "cl100k.tiktoken");
  EXPECT_EQ(tokenizer.encode("aaaaa"), (Ids{256, 257}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|>"), (Ids{100257}));
  EXPECT_EQ(tokenizer.decode(Ids{257, 0xe4, 0xbd, 0xa0}), "aaa你");
}

TEST(Tiktoken, SaysWhatIsWrong) {
  const TempFolder temp;
  const fs::path file = temp.path() / "o200k.tiktoken";
  const auto load = [&](const std::string& text) {
    temp.write(file.filename(), text);
    Tokenizer::load(file);
  };
  expect_error([&] { load("YQ==\n"); }, {"line 1", "is not a token and its rank"});
  expect_error([&] { load(all_bytes() + "YQ= 256\n"); }, {"line 257", "letters of base64"});
  expect_error([&] { load(all_bytes() + "Y?== 256\n"); }, {"line 257: letter 1 is not base64"});
  expect_error([&] { load(all_bytes() + "YWI= -1\n"); }, {"the rank is '-1'"});
  expect_error([&] { load(all_bytes() + "YWI= 99999999999\n"); }, {"the rank is '99999999999'"});
  expect_error([&] { load(all_bytes() + "YWI= 4294967295\n"); }, {"4294967295"});
  expect_error([&] { load(all_bytes() + "YWI= 12x\n"); }, {"the rank is '12x'"});
  expect_error([&] { load(all_bytes() + " 256\n"); }, {"a token of 0 bytes"});
  expect_error([&] { load(all_bytes() + "YQ== 256\n"); }, {"ranks 97 and 256 are the same token"});
  expect_error([&] { load(all_bytes() + "YWI= 7\n"); }, {"id 7 belongs to both"});
  expect_error([&] { load("YQ== 0\n"); }, {"not every byte is a token"});
  temp.write("own.tiktoken", all_bytes());
  expect_error([&] { Tokenizer::load(temp.path() / "own.tiktoken"); }, {"256 tokens, which is no known encoding"});
}

// --- GGUF vocabularies made by hand ----------------------------------------------------------------------------------

using test::GgufBytes;

GgufBytes small_llama() {
  GgufBytes file;
  file.text("tokenizer.ggml.model", "llama");
  file.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "ab"});
  file.floats("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -3, -1.5});
  file.integers("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1});
  return file;
}

Tokenizer load(const TempFolder& temp, const GgufBytes& file) {
  temp.write("v.gguf", file.bytes());
  return Tokenizer::load(temp.path() / "v.gguf");
}

TEST(GgufVocab, ReadsWhatWeWrote) {
  const TempFolder temp;
  EXPECT_EQ(load(temp, small_llama()).encode("ab b"), (Ids{3, 6, 3, 5}));
  GgufBytes named = small_llama();
  named.integer("tokenizer.ggml.bos_token_id", 1);
  EXPECT_EQ(load(temp, named).encode("ab"), (Ids{1, 3, 6}));
  EXPECT_EQ(load(temp, named).encode("a</s>b"), (Ids{1, 3, 4, 2, 3, 5}));
  named.flag("tokenizer.ggml.add_bos_token", false);
  named.flag("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(load(temp, named).encode("ab"), (Ids{6}));
}

TEST(GgufVocab, SaysWhatIsWrong) {
  const TempFolder temp;
  const auto wrong = [&](auto change, std::initializer_list<std::string_view> says) {
    GgufBytes file = small_llama();
    change(file);
    expect_error([&] { load(temp, file); }, says);
  };
  const std::string t = "tokenizer.ggml.";
  wrong([&](GgufBytes& f) { f.remove(t + "model"); }, {"tokenizer.ggml.model"});
  wrong([&](GgufBytes& f) { f.text(t + "model", "rwkv"); }, {"'rwkv' but known are gpt2, llama, t5 and bert"});
  wrong([&](GgufBytes& f) { f.remove(t + "tokens"); }, {"tokenizer.ggml.tokens"});
  wrong([&](GgufBytes& f) { f.texts(t + "tokens", {}); }, {"tokenizer.ggml.tokens is empty"});
  wrong([&](GgufBytes& f) { f.integers(t + "tokens", {1, 2, 3}); }, {"tokenizer.ggml.tokens"});
  wrong([&](GgufBytes& f) { f.floats(t + "scores", {0, 0}); }, {"scores has 2 entries but there are 7 tokens"});
  wrong([&](GgufBytes& f) { f.integers(t + "scores", {0, 0, 0, 0, 0, 0, 0}); }, {"tokenizer.ggml.scores"});
  wrong(
      [&](GgufBytes& f) {
        f.floats(t + "scores", {0, 0, 0, 0, 0, 0, std::numeric_limits<float>::quiet_NaN()});
      },
      {"the score nan"});
  wrong([&](GgufBytes& f) { f.integers(t + "token_type", {2, 3, 3}); }, {"token_type has 3 entries but there are 7"});
  wrong([&](GgufBytes& f) { f.integers(t + "token_type", {2, 3, 3, 1, 1, 1, 9}); }, {"token_type[6] is 9"});
  wrong([&](GgufBytes& f) { f.integers(t + "token_type", {2, 3, 3, 1, 1, 1, -1}); }, {"token_type[6] is -1"});
  wrong([&](GgufBytes& f) { f.floats(t + "token_type", {2, 3, 3, 1, 1, 1, 1}); }, {"tokenizer.ggml.token_type"});
  wrong([&](GgufBytes& f) { f.integers(t + "token_type", {2, 3, 3, 1, 1, 1, 6}); }, {"'ab' is of type byte"});
  wrong(
      [&](GgufBytes& f) {
        f.texts(t + "tokens", {"<unk>", "<0x-1>"});
        f.floats(t + "scores", {0, 0});
        f.integers(t + "token_type", {2, 6});
      },
      {"'<0x-1>' is of type byte but must be one of <0x00> to <0xFF>"});
  wrong([&](GgufBytes& f) { f.integer(t + "bos_token_id", 7); }, {"bos_token_id is 7 but there are 7 tokens"});
  wrong([&](GgufBytes& f) { f.text(t + "bos_token_id", "<s>"); }, {"tokenizer.ggml.bos_token_id"});
  wrong([&](GgufBytes& f) { f.integer(t + "add_bos_token", 1); }, {"tokenizer.ggml.add_bos_token"});
  wrong(
      [&](GgufBytes& f) {
        f.texts(t + "tokens", {"<unk>", "<s>", "</s>", "_", "a", "a", "ab"});
      },
      {"pieces 4 and 5 are both 'a'"});
  wrong(
      [&](GgufBytes& f) {
        f.integers(t + "precompiled_charsmap", {1, 2, 3});
      },
      {"precompiled_charsmap: a character map of 3 bytes"});
  const auto bpe = [&](GgufBytes& f) {
    f.text(t + "model", "gpt2");
    f.text(t + "pre", "gpt-2");
    f.texts(t + "merges", {"a b"});
  };
  wrong([&](GgufBytes& f) { bpe(f), f.text(t + "pre", "klingon"); },
        {"'klingon', a way of cutting text that is not known"});
  wrong([&](GgufBytes& f) { bpe(f), f.remove(t + "merges"); }, {"tokenizer.ggml.merges"});
  wrong([&](GgufBytes& f) { bpe(f), f.texts(t + "merges", {"ab"}); }, {"merges[0] is 'ab' but must be two tokens"});
  wrong([&](GgufBytes& f) { bpe(f); }, {"not every byte is a token"});
  wrong([&](GgufBytes& f) { f.text(t + "model", "bert"); }, {"names no unknown, cls or separator token"});
}

// --- Marian ----------------------------------------------------------------------------------------------------------

TEST(Marian, PiecesGetTheirIdsFromVocabJson) {
  const TempFolder temp;
  temp.write("source.spm", test::ModelBytes{}.bytes());
  temp.write("target.spm", test::ModelBytes{}.bytes());
  temp.write("vocab.json", R"({"</s>": 0, "<unk>": 1, "a": 2, "▁ab": 3, ">>zh<<": 4, "▁": 5, "<pad>": 6})");
  const Tokenizer tokenizer = Tokenizer::load(temp.path());
  EXPECT_EQ(tokenizer.encode("ab a"), (Ids{3, 5, 2, 0}));
  EXPECT_EQ(tokenizer.encode("ab b!"), (Ids{3, 5, 1, 1, 0}));  // b is a piece without an id, ! is no piece
  EXPECT_EQ(tokenizer.encode(">>zh<< ab"), (Ids{4, 3, 0}));
  EXPECT_EQ(tokenizer.encode("ab", {.add_specials = false}), (Ids{3}));
  EXPECT_EQ(tokenizer.decode(Ids{6, 3, 5, 2, 0}, {.skip_specials = true}), "ab a");
  EXPECT_EQ(tokenizer.named().pad, 6);
  EXPECT_EQ(tokenizer.named().eos, 0);
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  EXPECT_EQ(Tokenizer::load(temp.path() / "target.spm").encode("ab"), (Ids{3, 0}));

  temp.write("vocab.json", R"({"</s>": 0, "<unk>": 1})");
  expect_error([&] { Tokenizer::load(temp.path()); }, {"vocab.json: has no <pad>"});
  temp.write("vocab.json", R"(["</s>"])");
  expect_error([&] { Tokenizer::load(temp.path()); }, {"vocab.json is missing or not an object"});
  temp.write("vocab.json", R"({"</s>": "0"})");
  expect_error([&] { Tokenizer::load(temp.path()); }, {"the id of token '</s>' is not a whole number"});
}

}  // namespace
}  // namespace qkv

// Reading a large file may take three times its size and 16 MiB, whatever it holds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/philox.h"
#include "base/temp_folder.h"
#include "support/peak_memory.h"
#include "text/chat/ordered_json.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

constexpr size_t kLargeFile = 8'000'000;  // the long form of tests/faults/memory.sh takes 40 MB

enum class Answer { read, refused };

void expect_bounded(size_t file, Answer answer, FunctionRef<void()> work) {
  bool refused = false;
  const size_t peak = test::peak_memory(work, &refused);
  EXPECT_LE(peak, 3 * file + (size_t{16} << 20)) << "for a file of " << file << " bytes";
  EXPECT_EQ(refused, answer == Answer::refused);
}

void expect_bounded_json(const std::string& json, Answer answer) {
  EXPECT_GT(json.size(), kLargeFile * 9 / 10);
  const TempFolder folder;
  const auto file = folder.write("tokenizer.json", json);
  expect_bounded(json.size(), answer, [&] { Tokenizer::load(file).encode("some text"); });
}

// A list until the text is large enough; `item` appends one.
template <class Item>
std::string list_of(char open, char close, Item item) {
  std::string out(1, open);
  for (size_t i = 0; out.size() < kLargeFile; ++i) {
    if (i > 0) out += ',';
    item(out, i);
  }
  return out + close;
}

std::string word(size_t i) {  // words of a few letters, all different
  std::string out;
  for (size_t rest = i * 7919 + 1000; rest > 0; rest /= 26) out += static_cast<char>('a' + rest % 26);
  return out;
}

// Vocabulary and merges as a trained byte-level BPE has them: every merge makes a token of two earlier ones.
struct Made {
  std::string vocab = "{", pairs = "[", lines;
};
Made made_bpe(size_t bytes) {
  Made out;
  std::vector<std::string> tokens;
  std::set<std::string> known;
  const auto add = [&](const std::string& token) {
    if (token.size() > 12 || !known.insert(token).second) return false;
    const bool quoted = token == "\"" || token == "\\";
    out.vocab += fmt::format("{}\"{}{}\":{}", tokens.empty() ? "" : ",", quoted ? "\\" : "", token, tokens.size());
    tokens.push_back(token);
    return true;
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(byte_letter(static_cast<unsigned char>(byte))));
  for (uint64_t i = 0; out.vocab.size() + out.pairs.size() < bytes; ++i) {
    const auto pick = [&](uint64_t column) -> const std::string& {
      const size_t from = column == 0 ? tokens.size() : 256;
      return tokens['0' + random_u32({3, 4}, i, column) % (from - '0')];
    };
    const std::string left = pick(0), right = pick(1);
    if ((left + right).find_first_of("\"\\") != std::string::npos || !add(left + right)) continue;
    out.pairs += fmt::format("{}[\"{}\",\"{}\"]", out.pairs.size() > 1 ? "," : "", left, right);
    out.lines += left + " " + right + "\n";
  }
  out.vocab += "}";
  out.pairs += "]";
  return out;
}

TEST(TokenizerMemory, Bpe) {
  const Made made = made_bpe(kLargeFile);
  for (const char* ignores : {"false", "true"}) {
    expect_bounded_json(fmt::format(R"({{"pre_tokenizer":{{"type":"ByteLevel"}},"model":{{"type":"BPE",
                                        "ignore_merges":{},"merges":{},"vocab":{}}}}})",
                                    ignores, made.pairs, made.vocab),
                        Answer::read);
  }
  const TempFolder folder;
  const auto file = folder.write("vocab.json", made.vocab);
  folder.write("merges.txt", made.lines);
  expect_bounded(made.vocab.size() + made.lines.size(), Answer::read, [&] { Tokenizer::load(file); });
}

TEST(TokenizerMemory, Unigram) {
  const std::string list = list_of('[', ']', [](std::string& out, size_t i) {
    out += fmt::format("[\"{}\",{}]", i == 0 ? "<unk>" : word(i), -static_cast<double>(i) / 7000 - 1);
  });
  expect_bounded_json(R"({"model":{"type":"Unigram","unk_id":0,"vocab":)" + list + "}}", Answer::read);
}

TEST(TokenizerMemory, Words) {
  const std::string list = list_of(
      '{', '}', [](std::string& out, size_t i) { out += fmt::format("\"{}\":{}", i == 0 ? "[UNK]" : word(i), i); });
  expect_bounded_json(R"({"model":{"type":"WordPiece","vocab":)" + list + "}}", Answer::read);
  expect_bounded_json(R"({"model":{"type":"WordLevel","unk_token":"[UNK]","vocab":)" + list + "}}", Answer::read);
}

TEST(TokenizerMemory, AddedTokens) {
  const char* const kModel = R"("model":{"type":"WordLevel","vocab":{"<unk>":0}},"added_tokens":)";
  const auto full = [](std::string& out, size_t i) {
    out += fmt::format(R"({{"id":{},"content":"<|reserved_special_token_{}|>","single_word":false,"lstrip":false,)"
                       R"("rstrip":false,"normalized":false,"special":true}})",
                       i + 1, i);
  };
  const auto shortest = [](std::string& out, size_t i) {
    out += fmt::format(R"({{"id":{},"content":"{}"}})", i + 1, i);
  };
  expect_bounded_json(std::string("{") + kModel + list_of('[', ']', full) + "}", Answer::read);
  expect_bounded_json(std::string("{") + kModel + list_of('[', ']', shortest) + "}", Answer::refused);
}

TEST(TokenizerMemory, FilesMadeToDoHarm) {
  const std::string zeros = list_of('[', ']', [](std::string& out, size_t) { out += '0'; });
  const std::string empties = list_of('[', ']', [](std::string& out, size_t) { out += "{}"; });
  const std::string keys = list_of('{', '}', [](std::string& out, size_t i) { out += fmt::format("\"{}\":0", i); });
  for (const std::string& harm : {zeros, empties, keys, "\"" + std::string(kLargeFile, 'x')}) {
    expect_bounded_json(harm, Answer::refused);
    expect_bounded_json(R"({"normalizer":)" + harm + "}", Answer::refused);
    expect_bounded_json(R"({"model":{"vocab":)" + harm + "}}", Answer::refused);
    expect_bounded_json(R"({"model":{"type":)" + harm + "}}", Answer::refused);
    expect_bounded_json(R"({"model":{"type":"BPE","vocab":{},"merges":)" + harm + "}}", Answer::refused);
    expect_bounded_json(R"({"model":{"type":"WordLevel","vocab":{}},"added_tokens":)" + harm + "}", Answer::refused);
    expect_bounded(harm.size(), Answer::refused, [&] { (void)parse_json(harm, "test"); });
    expect_bounded(harm.size(), Answer::refused, [&] { (void)parse_ordered_json(harm, "test"); });
  }
  // A part that is not used is checked and passed over.
  expect_bounded_json(R"({"model":{"type":"WordLevel","vocab":{"<unk>":0}},"later":)" + zeros + "}", Answer::read);
}

TEST(TokenizerMemory, Settings) {
  const std::string added = list_of('{', '}', [](std::string& out, size_t i) {
    out += fmt::format(R"("{}":{{"content":"<{}>","special":true}})", i, i);
  });
  const TempFolder folder;
  const auto file =
      folder.write("tokenizer_config.json", R"({"added_tokens_decoder":)" + added + R"(,"bos_token":"a"})");
  expect_bounded(added.size(), Answer::read, [&] { EXPECT_EQ(read_tokenizer_settings(file).at("bos_token"), "a"); });
}

}  // namespace
}  // namespace qkv

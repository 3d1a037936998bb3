#include "data/dataset_tokenizer.h"

#include <gtest/gtest.h>

#include <set>

#include "base/json.h"
#include "data/dataset.h"
#include "data/dataset_bytes.h"
#include "support/pass.h"

namespace qkv {
namespace {

Tokenizer small(const std::string& name) {
  return Tokenizer::load(test::golden("tokenizers/" + name));
}

// By the post-processors of these files.
TEST(DatasetTokenizer, PutsAroundADocumentWhatTheTokenizerPutsAroundAText) {
  const auto around = [](const std::string& name) {
    const DocumentTokens tokens = document_tokens(small(name));
    return std::pair(tokens.begin.value_or(-1), tokens.end.value_or(-1));
  };
  EXPECT_EQ(around("gpt2"), std::pair(-1, -1));
  EXPECT_EQ(around("llama2"), std::pair(1, -1));
  EXPECT_EQ(around("llama3"), std::pair(0, -1));
  EXPECT_EQ(around("unigram"), std::pair(-1, 1));
  EXPECT_EQ(around("wordpiece"), std::pair(2, 3));
}

// Hugging Face's ids of these texts, with special tokens.
TEST(DatasetTokenizer, PackedDocumentsAreTheReferencesIds) {
  for (const std::string name : {"gpt2", "llama2", "llama3", "unigram", "wordpiece"}) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = small(name);
    const DocumentTokens around = document_tokens(tokenizer);
    std::string lines;
    std::vector<std::vector<int32_t>> wanted;
    const auto path = test::golden("tokenizers/" + name + "/vectors.json");
    for (const Json& one : parse_json(read_file(path, 1 << 24), "vectors")) {
      const auto text = one["text"].get<std::string>();
      lines += Json{{"text", text}}.dump() + '\n';
      const bool blank = text.find_first_not_of(" \t\r\n\f\v") == text.npos;
      if (!blank && !one["ids"].empty()) wanted.push_back(one["ids_special"].get<std::vector<int32_t>>());
    }
    const TempFolder folder;
    const auto file = folder.write("x.jsonl", lines);
    const auto encode = [&](std::string_view text, std::vector<int32_t>& ids) {
      ids = tokenizer.encode(text, {.add_specials = false});
    };
    ThreadPool pool(2);
    pack_dataset({.files = {file.string()}, .out = folder.path() / "out", .source = {.format = DataFormat::jsonl}},
                 {.encode = encode,
                  .vocabulary = tokenizer.vocab_size(),
                  .fingerprint = fingerprint(tokenizer),
                  .begin_token = around.begin,
                  .end_token = around.end},
                 pool);
    const PackedDataset data(folder.path() / "out");
    const PackedSplit& train = data.of(Split::train);
    EXPECT_EQ(data.manifest().tokenizer, fingerprint(tokenizer));
    ASSERT_GT(wanted.size(), 50U);
    ASSERT_EQ(train.documents(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::vector<int32_t> ids(train.length(i));
      train.copy(train.start(i), ids);
      EXPECT_EQ(ids, wanted[i]) << i;
    }
  }
}

TEST(DatasetTokenizer, FingerprintsTellTokenizersApart) {
  std::set<std::string> all;
  size_t tokenizers = 0;
  for (const auto& folder : std::filesystem::directory_iterator(test::golden("tokenizers"))) {
    if (!std::filesystem::exists(folder.path() / "tokenizer.json")) continue;
    const Tokenizer tokenizer = Tokenizer::load(folder.path() / "tokenizer.json");
    EXPECT_EQ(fingerprint(tokenizer), fingerprint(Tokenizer::load(folder.path() / "tokenizer.json")));
    EXPECT_EQ(fingerprint(tokenizer).size(), 64U);
    all.insert(fingerprint(tokenizer));
    ++tokenizers;
  }
  EXPECT_GE(tokenizers, 6U);
  EXPECT_EQ(all.size(), tokenizers);
}

}  // namespace
}  // namespace qkv

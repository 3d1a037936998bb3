// Against Hugging Face's results: ids, ids with specials, tokens, offsets and decoded text of every case.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_support.h"
#include "verify/verify_tokenizer.h"

namespace qkv {
namespace {

void expect_all_equal(const std::filesystem::path& folder, size_t cases) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::string name = (folder / "vectors.json").string();
  const TokenizerVerdict verdict = verify_tokenizer(tokenizer, read_file(name, 1 << 28), name);
  EXPECT_EQ(verdict.cases, cases);
  EXPECT_EQ(verdict.equal, verdict.cases);
  for (const TokenizerDifference& d : verdict.differences) {
    ADD_FAILURE() << folder << " case " << d.index << ", " << d.field << " of [" << d.text << "]\n  expected "
                  << d.expected << "\n  got      " << d.got;
  }
}

class SmallVectors : public testing::TestWithParam<const char*> {};
TEST_P(SmallVectors, AreEqual) {
  expect_all_equal(test::golden(std::string("tokenizers/") + GetParam()), 180);
}
INSTANTIATE_TEST_SUITE_P(Tokenizer, SmallVectors,
                         testing::Values("gpt2", "llama2", "llama3", "qwen2", "unigram", "wordpiece"));

class RealVectors : public testing::TestWithParam<const char*> {};
TEST_P(RealVectors, AreEqual) {
  QKV_NEED_SHARED(folder, std::string("tokenizers/real/") + GetParam());
  expect_all_equal(folder, 860);
}
INSTANTIATE_TEST_SUITE_P(Tokenizer, RealVectors,
                         testing::Values("gpt2", "llama3", "qwen2_5", "qwen3", "deepseek_v3", "bert-uncased"));

TEST(TokenizerVerify, FindsEveryKindOfDifference) {
  const Tokenizer tokenizer = test::golden_tokenizer("gpt2");
  const std::string name = test::golden("tokenizers/gpt2/vectors.json").string();
  Json vectors = parse_json(read_file(name, 1 << 28), name, {.bytes = 1 << 28, .tree = 1 << 30});
  const Json right = vectors[20];
  for (const char* field : {"ids", "ids_special", "tokens", "offsets", "decoded", "decoded_skip"}) {
    vectors = Json::array({right});
    if (field[0] == 'd') {
      vectors[0][field] = "something else";
    } else {
      vectors[0][field].push_back(vectors[0][field][0]);
    }
    const TokenizerVerdict verdict = verify_tokenizer(tokenizer, vectors.dump(), name);
    EXPECT_EQ(verdict.equal, 0U) << field;
    ASSERT_EQ(verdict.differences.size(), 1U) << field;
    EXPECT_EQ(verdict.differences[0].field, field);
  }
}

}  // namespace
}  // namespace qkv

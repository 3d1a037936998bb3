#include "text/tokenizer/sentencepiece/sentencepiece.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/pass.h"
#include "verify/verify_tokenizer.h"

namespace qkv {
namespace {

class SentencePieceVectors : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceVectors, AreEqual) {
  QKV_NEED_SHARED(folder, std::string("tokenizers/sentencepiece/") + GetParam());
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.model");
  const std::string vectors = read_file(folder / "vectors.json", 10'000'000);
  const TokenizerVerdict verdict = verify_tokenizer(tokenizer, vectors, "vectors.json");
  EXPECT_EQ(verdict.cases, 192U);
  EXPECT_EQ(verdict.equal, verdict.cases);
  for (const auto& difference : verdict.differences) {
    ADD_FAILURE() << difference.text << ": " << difference.field << " is " << difference.got.dump() << " but must be "
                  << difference.expected.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceVectors,
                         testing::Values("bpe", "llama2-bpe", "t5-unigram", "unigram", "unigram-bytefallback"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace qkv

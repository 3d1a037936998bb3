#include "text/sentencepiece.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/pass.h"

namespace qkv {
namespace {

class SentencePieceVectors : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceVectors, AreEqual) {
  QKV_NEED_SHARED(folder, std::string("tokenizers/sentencepiece/") + GetParam());
  const SentencePiece model = SentencePiece::open(folder / "tokenizer.model");
  const Json vectors = parse_json(read_file(folder / "vectors.json", 10'000'000), "vectors.json");
  ASSERT_EQ(vectors.size(), 192U);
  for (const Json& vector : vectors) {
    const auto text = vector.at("text").get<std::string>();
    const auto ids = vector.at("ids").get<std::vector<int32_t>>();
    const SentencePiece::Encoded encoded = model.encode(text);
    EXPECT_EQ(encoded.ids, ids) << text;
    EXPECT_EQ(model.pieces(encoded), vector.at("pieces").get<std::vector<std::string>>()) << text;
    EXPECT_EQ(model.decode(ids), vector.at("decoded").get<std::string>()) << text;
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

// A converted model takes its tokenizer along.
#include "open/convert_tokenizer.h"

#include <gtest/gtest.h>

#include "base/temp_folder.h"
#include "io/gguf.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

TEST(ConvertTokenizer, GoesThereAndBack) {
  QKV_NEED_SHARED(folder, "models/stories260K");
  const TempFolder temp;
  EXPECT_TRUE(convert_model(folder, temp.path() / "m.gguf", with_tokenizer({})).empty());
  const Gguf gguf = Gguf::open(temp.path() / "m.gguf");
  EXPECT_EQ(gguf.text("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(gguf.texts("tokenizer.ggml.tokens").size(), 512U);
  EXPECT_EQ(gguf.integer("tokenizer.ggml.bos_token_id"), 1);
  EXPECT_FALSE(gguf.text("general.size_label").empty());

  convert_model(temp.path() / "m.gguf", temp.path() / "back", with_tokenizer({}));
  const std::string text = "Once upon a time, Lily said: \u4f60\u597d!";
  EXPECT_EQ(Tokenizer::load(temp.path() / "back").encode(text), Tokenizer::load(folder).encode(text));
}

}  // namespace
}  // namespace qkv

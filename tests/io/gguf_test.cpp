// Files of llama.cpp: their content, and that writing them again gives the same bits.
#include "io/gguf.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "io/files.h"
#include "io/gguf_write.h"
#include "support/pass.h"

namespace qkv {
namespace {

using test::all_of;
using test::contents;
using test::outgoing_text;
using test::text_of;

std::vector<std::filesystem::path> gguf_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() == ".gguf") out.push_back(file.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_round_trip(const std::filesystem::path& path) {
  const TempFolder folder;
  const Gguf in = Gguf::open(path);
  GgufMetadata metadata;
  for (const Gguf::Field& field : in.fields()) metadata.add(field);
  write_gguf(folder.path() / "out.gguf", metadata, all_of(in));
  EXPECT_TRUE(contents(folder.path() / "out.gguf") == contents(path)) << path;
}

TEST(Gguf, FilesOfLlamaCppComeOutBitEqual) {
  QKV_NEED_SHARED(folder, "gguf");
  const auto files = gguf_files(folder);
  ASSERT_EQ(files.size(), 13u);
  for (const auto& file : files) expect_round_trip(file);
}

TEST(Gguf, VocabulariesOfLlamaCppComeOutBitEqual) {
  QKV_NEED_SHARED(folder, "tokenizers/real/gguf-vocab");
  const auto files = gguf_files(folder);
  ASSERT_EQ(files.size(), 3u);
  for (const auto& file : files) expect_round_trip(file);
}

TEST(Gguf, ReadsWhatLlamaCppWrote) {
  QKV_NEED_SHARED(file, "gguf/tiny-Q4_K.gguf");
  const Gguf in = Gguf::open(file);
  EXPECT_EQ(in.alignment(), 32u);
  EXPECT_EQ(in.text("general.architecture"), "llama");
  EXPECT_EQ(in.text("general.name"), "tiny");
  EXPECT_EQ(in.integer("llama.embedding_length"), 256);
  EXPECT_EQ(in.integer("llama.vocab_size"), 96);
  EXPECT_EQ(in.number("llama.attention.layer_norm_rms_epsilon"), static_cast<double>(1e-5F));
  EXPECT_EQ(in.at("token_embd.weight").shape, (std::vector<int64_t>{96, 256}));
  EXPECT_EQ(in.at("token_embd.weight").dtype, "Q4_K");
  EXPECT_EQ(in.at("token_embd.weight").bytes.size(), 96u * 144);
  EXPECT_EQ(in.at("blk.1.ffn_down.weight").shape, (std::vector<int64_t>{256, 512}));
  EXPECT_EQ(in.at("output_norm.weight").dtype, "F32");
  EXPECT_EQ(in.find("nothing"), nullptr);
  expect_error([&] { (void)in.at("token_embed.weight"); }, {"has no tensor 'token_embed.weight' among its 21"});
  expect_error([&] { (void)in.text("general.architectur"); }, {"has no key 'general.architectur'"});
}

TEST(Gguf, ReadsAVocabulary) {
  QKV_NEED_SHARED(folder, "tokenizers/real/gguf-vocab");
  for (const auto& file : gguf_files(folder)) {
    const Gguf in = Gguf::open(file);
    const size_t tokens = in.texts("tokenizer.ggml.tokens").size();
    EXPECT_GT(tokens, 20'000u) << file;
    EXPECT_EQ(in.integers("tokenizer.ggml.token_type").size(), tokens) << file;
    EXPECT_TRUE(in.entries().empty()) << file;
  }
}

// A file with every kind of value.
class AllKinds : public testing::Test {
 protected:
  TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "all.gguf";

  Gguf written(const std::vector<OutgoingTensor>& tensors = {}) {
    GgufMetadata m;
    m.add_text("text", "größe 量");
    m.add_text("empty", "");
    m.add_u32("u32", UINT32_MAX);
    m.add_i32("i32", INT32_MIN);
    m.add_u64("u64", UINT64_MAX);
    m.add_f32("f32", 0.1F);
    m.add_flag("yes", true);
    m.add_flag("no", false);
    m.add_texts("texts", std::vector<std::string>{"a", "", "中文"});
    m.add_u32s("u32s", std::vector<uint32_t>{0, UINT32_MAX});
    m.add_i32s("i32s", std::vector<int32_t>{-1, INT32_MAX});
    m.add_f32s("f32s", std::vector<float>{1.5F, -2});
    m.add_i32s("none", {});
    write_gguf(path_, m, tensors);
    return Gguf::open(path_);
  }
};

TEST_F(AllKinds, ComeBack) {
  const Gguf in = written();
  EXPECT_EQ(in.fields().size(), 13u);
  EXPECT_EQ(in.text("text"), "größe 量");
  EXPECT_EQ(in.text("empty"), "");
  EXPECT_EQ(in.integer("u32"), int64_t{UINT32_MAX});
  EXPECT_EQ(in.integer("i32"), INT32_MIN);
  EXPECT_EQ(in.number("f32"), static_cast<double>(0.1F));
  EXPECT_TRUE(in.flag("yes"));
  EXPECT_FALSE(in.flag("no"));
  EXPECT_EQ(in.texts("texts"), (std::vector<std::string_view>{"a", "", "中文"}));
  EXPECT_EQ(in.integers("u32s"), (std::vector<int64_t>{0, UINT32_MAX}));
  EXPECT_EQ(in.integers("i32s"), (std::vector<int64_t>{-1, INT32_MAX}));
  EXPECT_EQ(in.floats("f32s"), (std::vector<float>{1.5F, -2}));
  EXPECT_TRUE(in.integers("none").empty());
  EXPECT_TRUE(in.is_array("none"));
  EXPECT_FALSE(in.is_array("u32"));
  EXPECT_TRUE(in.has("yes"));
  EXPECT_FALSE(in.has("yess"));
  expect_round_trip(path_);
}

TEST_F(AllKinds, AreGivenOnlyAsWhatTheyAre) {
  const Gguf in = written();
  expect_error([&] { (void)in.text("u32"); }, {"key 'u32' must be text but is u32"});
  expect_error([&] { (void)in.text("texts"); }, {"must be text but is array of text"});
  expect_error([&] { (void)in.integer("f32"); }, {"must be an integer but is f32"});
  expect_error([&] { (void)in.integer("yes"); }, {"must be an integer but is bool"});
  expect_error([&] { (void)in.integer("u64"); }, {"'u64' is 18446744073709551615 but must lie in"});
  expect_error([&] { (void)in.number("u32"); }, {"must be f32 or f64 but is u32"});
  expect_error([&] { (void)in.flag("u32"); }, {"must be bool but is u32"});
  expect_error([&] { (void)in.texts("i32s"); }, {"must be an array of text but is array of i32"});
  expect_error([&] { (void)in.texts("text"); }, {"must be an array of text but is text"});
  expect_error([&] { (void)in.integers("f32s"); }, {"must be an array of integers but is array of f32"});
  expect_error([&] { (void)in.integers("u32"); }, {"must be an array of integers but is u32"});
  expect_error([&] { (void)in.floats("u32s"); }, {"must be an array of f32 but is array of u32"});
}

TEST_F(AllKinds, StandBesideTensorsOfAnyShape) {
  const Gguf in = written({outgoing_text("matrix", "F32", {3, 2}, "123456781234567812345678"),
                           outgoing_text("odd", "I8", {5}, "abcde"), outgoing_text("scalar", "F16", {}, "hf"),
                           outgoing_text("nothing", "F32", {0, 4}, ""),
                           outgoing_text("blocks", "Q8_0", {2, 32}, std::string(68, 'q'))});
  EXPECT_EQ(in.entries().size(), 5u);
  EXPECT_EQ(in.at("matrix").shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(text_of(in.at("odd").bytes), "abcde");
  EXPECT_TRUE(in.at("scalar").shape.empty());
  EXPECT_EQ(text_of(in.at("scalar").bytes), "hf");
  EXPECT_EQ(in.at("nothing").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(in.at("blocks").bytes.size(), 68u);
  const Gguf copy = Gguf(in);
  EXPECT_EQ(copy.at("odd").name, "odd");
  in.release(in.at("odd"));
  EXPECT_EQ(text_of(in.at("odd").bytes), "abcde");
  expect_round_trip(path_);
}

TEST(GgufWrite, KeepsAnotherAlignment) {
  const TempFolder folder;
  GgufMetadata m;
  m.add_u32("general.alignment", 256);
  const std::vector<OutgoingTensor> tensors{outgoing_text("a", "I8", {1}, "a"), outgoing_text("b", "I8", {1}, "b")};
  write_gguf(folder.path() / "m.gguf", m, tensors);
  const Gguf in = Gguf::open(folder.path() / "m.gguf");
  EXPECT_EQ(in.alignment(), 256u);
  EXPECT_EQ(in.at("b").bytes.data() - in.at("a").bytes.data(), 256);
  expect_round_trip(folder.path() / "m.gguf");
}

TEST(GgufWrite, RefusesWhatLlamaCppWouldNotLoad) {
  const TempFolder folder;
  const auto write = [&](const std::vector<OutgoingTensor>& tensors) {
    write_gguf(folder.path() / "m.gguf", {}, tensors);
  };
  expect_error([&] { write({outgoing_text(std::string(64, 'n'), "I8", {1}, "a")}); }, {"name of 64 bytes", "1 to 63"});
  expect_error([&] { write({outgoing_text("", "I8", {1}, "a")}); }, {"name of 0 bytes"});
  expect_error([&] { write({outgoing_text("x", "I8", {1, 1, 1, 1, 1}, "a")}); }, {"5 dimensions but GGUF takes 4"});
  expect_error([&] { write({outgoing_text("x", "U8", {1}, "a")}); }, {"GGUF has no type 'U8'"});
  expect_error([&] { write({outgoing_text("x", "Q8_0", {33}, "a")}); }, {"rows of 33", "blocks of 32"});
  expect_error([&] { write({outgoing_text("x", "Q8_0", {32, 3}, "a")}); }, {"rows of 3 "});
  expect_error([&] { write({outgoing_text("x", "I8", {-1}, "a")}); }, {"-1"});
  expect_error(
      [&] {
        write({outgoing_text("x", "I8", {1}, "a"), outgoing_text("x", "I8", {1}, "a")});
      },
      {"'x' is to be written twice"});
  expect_error(
      [] {
        GgufMetadata m;
        m.add_u32("a", 1);
        m.add_text("a", "");
      },
      {"'a' is to be written twice"});
  expect_error([] { GgufMetadata().add_u32("", 1); }, {"0 bytes but may have 1 to 65535"});
  for (const uint32_t alignment : {0U, 1U, 4U, 24U, 8192U, 0x80000000U}) {
    expect_error([&] { GgufMetadata().add_u32("general.alignment", alignment); }, {"must be a power of two from 8"});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GgufWrite, LeavesNothingWhenTheBytesDoNotFit) {
  const TempFolder folder;
  folder.write("m.gguf", "before");
  for (const char* const bytes : {"", "abc", "abcde"}) {
    const auto error = error_of([&] {
      write_gguf(folder.path() / "m.gguf", {}, std::vector<OutgoingTensor>{outgoing_text("x", "I8", {4}, bytes)});
    });
    ASSERT_TRUE(error) << bytes;
    EXPECT_EQ(error->kind(), Error::Kind::internal);
    EXPECT_NE(error->message().find("needs 4 bytes but was given"), std::string::npos) << error->message();
  }
  EXPECT_EQ(contents(folder.path() / "m.gguf"), "before");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace qkv

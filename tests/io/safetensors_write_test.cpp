// Written files read back bit for bit, and files of the reference writer are reproduced exactly.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "support/pass.h"

namespace qkv {
namespace safetensors_write_test {

using test::all_of;
using test::contents;
using test::outgoing_text;
using test::text_of;

// How many of the files under `folder` came out bit-equal, of those with at most one key of metadata: the reference
// writer keeps metadata in no order.
int expect_round_trips(const std::filesystem::path& folder, uintmax_t largest) {
  const TempFolder out;
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".safetensors" || file.file_size() > largest) continue;
    const Safetensors in = Safetensors::open(file.path());
    if (in.metadata().size() > 1) continue;
    write_safetensors(out.path() / "out", all_of(in), in.metadata());
    EXPECT_TRUE(contents(out.path() / "out") == contents(file.path())) << file.path();
    ++seen;
  }
  return seen;
}

TEST(SafetensorsWrite, GoldensOfTransformersComeOutBitEqual) {
  EXPECT_GE(expect_round_trips(test::golden(""), 64'000'000), 50);
}

TEST(SafetensorsWrite, ReadsBackAndIsAligned) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "m.safetensors";
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"note", "größe \"量\" \n \x01"}};
  write_safetensors(path,
                    std::vector<OutgoingTensor>{
                        outgoing_text("odd", "U8", {3}, "abc"), outgoing_text("b.weight", "F32", {2, 1}, "12345678"),
                        outgoing_text("a \"quoted\" 名", "F32", {}, "wxyz"), outgoing_text("empty", "BF16", {0, 7}, ""),
                        outgoing_text("long", "I64", {1}, "LONGLONG")},
                    metadata);
  const std::string file = contents(path);
  EXPECT_EQ(static_cast<unsigned char>(file[0]) % 8, 0);
  const Safetensors in = Safetensors::open(path);
  EXPECT_EQ(in.metadata(), metadata);
  EXPECT_EQ(in.entries().size(), 5u);
  EXPECT_EQ(text_of(in.at("odd").bytes), "abc");
  EXPECT_EQ(text_of(in.at("b.weight").bytes), "12345678");
  EXPECT_EQ(in.at("b.weight").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(text_of(in.at("a \"quoted\" 名").bytes), "wxyz");
  EXPECT_EQ(in.at("empty").shape, (std::vector<int64_t>{0, 7}));
  EXPECT_TRUE(file.ends_with("LONGLONGwxyz12345678abc")) << "wide types first, then by name";
  in.release(in.at("long"));
  EXPECT_EQ(text_of(in.at("long").bytes), "LONGLONG");
}

TEST(SafetensorsWrite, TakesBytesInPiecesAndNothingAtAll) {
  const TempFolder folder;
  OutgoingTensor pieces{"x", "U8", {10}, [](ByteSink sink) {
                          for (const std::string piece : {"ab", "", "cdefg", "hij"}) {
                            sink(std::as_bytes(std::span(piece)));
                          }
                        }};
  write_safetensors(folder.path() / "x", std::span(&pieces, 1), {});
  EXPECT_EQ(text_of(Safetensors::open(folder.path() / "x").at("x").bytes), "abcdefghij");
  write_safetensors(folder.path() / "none", {}, {});
  EXPECT_TRUE(Safetensors::open(folder.path() / "none").entries().empty());
}

TEST(SafetensorsWrite, RefusesWhatItsReaderWould) {
  const TempFolder folder;
  const auto write = [&](const std::vector<OutgoingTensor>& tensors) {
    write_safetensors(folder.path() / "m", tensors, {});
  };
  expect_error([&] { write({outgoing_text("x", "Q8_0", {32}, std::string(34, 'q'))}); },
               {"tensor 'x'", "safetensors has no dtype 'Q8_0'"});
  expect_error([&] { write({outgoing_text("x", "f32", {1}, "1234")}); }, {"no dtype 'f32'"});
  expect_error([&] { write({outgoing_text("__metadata__", "U8", {1}, "1")}); }, {"taken by the format"});
  expect_error(
      [&] {
        write({outgoing_text("x", "U8", {1}, "1"), outgoing_text("x", "I8", {1}, "1")});
      },
      {"'x' is to be written twice"});
  expect_error([&] { write({outgoing_text("x\xFF", "U8", {1}, "1")}); }, {"not UTF-8"});
  expect_error([&] { write({outgoing_text("x", "F4", {3}, "1")}); }, {"12 bits"});
  expect_error([&] { write({outgoing_text("x", "F32", {-1}, "1")}); }, {"-1"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWrite, LeavesWhatWasThereWhenTheBytesDoNotCome) {
  const TempFolder folder;
  folder.write("m", "before");
  const OutgoingTensor broken{"x", "U8", {10}, [](ByteSink sink) {
                                sink(std::as_bytes(std::span("abc", 3)));
                                QKV_FAIL("the source is gone", Hint("none"));
                              }};
  expect_error([&] { write_safetensors(folder.path() / "m", std::span(&broken, 1), {}); }, {"the source is gone"});
  EXPECT_EQ(contents(folder.path() / "m"), "before");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// The length of the header counts too: it stands before it.
TEST(SafetensorsWrite, DataBeginAtTheAlignmentAskedFor) {
  const TempFolder folder;
  for (const uint64_t alignment : {8UL, 32UL, 64UL, 4096UL}) {
    for (const char* name : {"x", "a longer name", "a name that is longer still, by some letters"}) {
      const OutgoingTensor one = outgoing_text(name, "U8", {3}, "abc");
      write_safetensors(folder.path() / "m", std::span(&one, 1), {}, alignment);
      const std::string file = contents(folder.path() / "m");
      EXPECT_EQ((file.size() - 3) % alignment, 0U) << name << ", alignment " << alignment;
      EXPECT_EQ(file.substr(file.size() - 3), "abc");
    }
  }
}

}  // namespace safetensors_write_test
}  // namespace qkv

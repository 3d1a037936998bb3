// The names of 100,000s of tensors take at most three times their text and 16 MiB.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/temp_folder.h"
#include "io/safetensors_folder.h"
#include "support/peak_memory.h"

namespace qkv {
namespace {

std::string with_length(std::string header) {
  while (header.size() % 8 != 0) header += ' ';
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return out + header;
}

struct Names {
  const char* prefix;
  size_t tensors;
};

class SafetensorsMemory : public testing::TestWithParam<Names> {};

TEST_P(SafetensorsMemory, IsBounded) {
  std::string header = "{", index = R"({"weight_map":{)";
  for (size_t i = 0; i < GetParam().tensors; ++i) {
    const std::string name = GetParam().prefix + std::to_string(i);
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", i == 0 ? "" : ",", name);
    index += fmt::format(R"({}"{}":"a.safetensors")", i == 0 ? "" : ",", name);
  }
  const TempFolder folder;
  const auto file = folder.write("a.safetensors", with_length(header + "}"));
  folder.write("model.safetensors.index.json", index + "}}");
  for (const auto& [path, bytes] : {std::pair{file, header.size()}, {folder.path(), header.size() + index.size()}}) {
    bool refused = false;
    const size_t peak = test::peak_memory(
        [&, at = path] { EXPECT_EQ(SafetensorsFolder::open(at).entries().size(), GetParam().tensors); }, &refused);
    EXPECT_LE(peak, 3 * bytes + (size_t{16} << 20)) << path;
    EXPECT_FALSE(refused);
  }
}

INSTANTIATE_TEST_SUITE_P(Header, SafetensorsMemory,
                         testing::Values(Names{"t", 240'000},
                                         Names{"model.layers.17.mlp.experts.121.down_proj.weight", 150'000}));

}  // namespace
}  // namespace qkv

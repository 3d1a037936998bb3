// Bytes of written npz files, against the zip and NumPy formats.
#include "io/npz.h"

#include <gtest/gtest.h>

#include "base/temp_folder.h"

namespace qkv {
namespace {

uint32_t number(const std::string& bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes.at(at + static_cast<size_t>(i)));
  return value;
}

TEST(Npz, is_a_zip_of_arrays) {
  const TempFolder temp;
  const auto path = temp.path() / "a.npz";
  const std::vector<float> numbers{1.5F, -2, 0.25F, 4, 5, 6};
  const std::vector<int32_t> ids{7, -1};
  const std::vector<std::string> words{"猫", "a", ""};
  NpzWriter out(path);
  out.add("L0.q", numbers, {2, 3});
  out.add("ids", ids, {2});
  out.add("tokens", words);
  EXPECT_FALSE(std::filesystem::exists(path));
  out.commit();
  const std::string file = read_file(path, 1 << 20);

  // From the end: how many entries, and where their list begins.
  const size_t end = file.size() - 22;
  ASSERT_EQ(number(file, end, 4), 0x06054b50U);
  ASSERT_EQ(number(file, end + 10, 2), 3U);
  size_t at = number(file, end + 16, 4);
  EXPECT_EQ(at + number(file, end + 12, 4), end);
  const std::vector<std::string> names{"L0.q.npy", "ids.npy", "tokens.npy"},
      heads{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '|S3', 'fortran_order': False, 'shape': (3,), }"};
  const std::vector<std::string> data{std::string(reinterpret_cast<const char*>(numbers.data()), 24),
                                      std::string(reinterpret_cast<const char*>(ids.data()), 8),
                                      std::string("猫a\0\0\0\0\0", 9)};
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_EQ(number(file, at, 4), 0x02014b50U);
    const size_t length = number(file, at + 28, 2), size = number(file, at + 24, 4), local = number(file, at + 42, 4);
    EXPECT_EQ(file.substr(at + 46, length), names[i]);
    ASSERT_EQ(number(file, local, 4), 0x04034b50U);
    EXPECT_EQ(file.substr(local + 10, 16), file.substr(at + 12, 16)) << "time, sum and sizes differ";
    const std::string array = file.substr(local + 30 + length, size);
    EXPECT_EQ(array.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
    const size_t head = number(array, 8, 2);
    EXPECT_EQ((10 + head) % 64, 0U);
    EXPECT_EQ(array.substr(10, heads[i].size()), heads[i]);
    EXPECT_EQ(array[9 + head], '\n');
    EXPECT_EQ(array.substr(10 + head), data[i]);
    at += 46 + length;
  }
}

// An array of nothing: its header alone is summed.
TEST(Npz, sums_as_zips_do) {
  const TempFolder temp;
  const auto path = temp.path() / "b.npz";
  NpzWriter out(path);
  const std::vector<int32_t> none;
  out.add("x", none, {0});
  out.commit();
  const std::string file = read_file(path, 1 << 20);
  // CRC-32 by its definition, bit by bit, over the bytes in the zip.
  const std::string array = file.substr(30 + 5, number(file, 18, 4));
  uint32_t crc = 0xffffffff;
  for (const char c : array) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? 0xedb88320U : 0U);
  }
  EXPECT_EQ(number(file, 14, 4), ~crc);
}

}  // namespace
}  // namespace qkv

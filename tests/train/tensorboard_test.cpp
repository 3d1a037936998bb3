// TensorBoard event files, parsed independently: TFRecord and protocol buffers, bit by bit.
#include "train/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <ctime>

#include "base/file.h"
#include "base/temp_folder.h"

namespace qkv {
namespace {

// The remainder of a division of polynomials, one bit at a time.
uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = ((crc ^ static_cast<uint32_t>(static_cast<unsigned char>(c)) >> bit) & 1) != 0;
      crc = one ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
    }
  }
  return ~crc;
}

uint64_t number(std::string_view& from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<unsigned char>(from.at(i))} << 8 * i;
  from.remove_prefix(bytes);
  return value;
}

void expect_crc(std::string_view& from, std::string_view of) {
  const uint32_t crc = crc32c(of);
  EXPECT_EQ(number(from, 4), static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xA282EAD8));
}

std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> all;
  while (!file.empty()) {
    const std::string_view head = file.substr(0, 8);
    const uint64_t length = number(file, 8);
    expect_crc(file, head);
    all.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    expect_crc(file, all.back());
  }
  return all;
}

// Values by field number: numbers as their bits, messages and texts as bytes.
struct Message {
  explicit Message(std::string_view bytes) {
    const auto varint = [&] {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const uint64_t byte = number(bytes, 1);
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80) return value;
      }
    };
    while (!bytes.empty()) {
      const uint64_t key = varint();
      const auto field = static_cast<int>(key >> 3);
      switch (key & 7) {
        case 0:
          numbers[field] = varint();
          break;
        case 1:
          numbers[field] = number(bytes, 8);
          break;
        case 2: {
          const uint64_t length = varint();
          texts[field].emplace_back(bytes.substr(0, length));
          bytes.remove_prefix(length);
          break;
        }
        case 5:
          numbers[field] = number(bytes, 4);
          break;
        default:
          ADD_FAILURE() << "wire type " << (key & 7);
          return;
      }
    }
  }
  std::map<int, uint64_t> numbers;
  std::map<int, std::vector<std::string>> texts;
};

TEST(TensorBoard, TheCheckOfTheCheck) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283);
}

TEST(TensorBoard, FilesAreWhatTheirFormatSays) {
  const TempFolder temp;
  const int64_t far = (int64_t{1} << 40) + 5;
  {
    EventFile file(temp.path());
    file.restarted(300);
    file.scalars(300, {{"loss", 2.5}, {"损失", -0.1}});
    file.scalars(far, {{"lr", 1e-30}});
  }
  EventFile another(temp.path());  // in the same second
  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(temp.path()), {});
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents."));
  const std::vector<std::string> all = records(read_file(files[0], 1 << 20));
  ASSERT_EQ(all.size(), 4U);
  for (const std::string& event : all) {
    EXPECT_NEAR(std::bit_cast<double>(Message(event).numbers.at(1)), static_cast<double>(std::time(nullptr)), 60);
  }
  EXPECT_EQ(Message(all[0]).texts.at(3), std::vector<std::string>{"brain.Event:2"});
  EXPECT_EQ(Message(all[1]).numbers.at(2), 300U);
  EXPECT_EQ(Message(Message(all[1]).texts.at(7).at(0)).numbers.at(1), 1U);  // SessionLog.START

  const auto values = [](const std::string& event) {
    std::map<std::string, float> read;
    const Message summary(Message(event).texts.at(5).at(0));
    for (const std::string& value : summary.texts.at(1)) {
      const Message m(value);
      read[m.texts.at(1).at(0)] = std::bit_cast<float>(static_cast<uint32_t>(m.numbers.at(2)));
    }
    return read;
  };
  EXPECT_EQ(Message(all[2]).numbers.at(2), 300U);
  EXPECT_EQ(values(all[2]), (std::map<std::string, float>{{"loss", 2.5F}, {"损失", -0.1F}}));
  EXPECT_EQ(Message(all[3]).numbers.at(2), static_cast<uint64_t>(far));
  EXPECT_EQ(values(all[3]), (std::map<std::string, float>{{"lr", 1e-30F}}));
}

}  // namespace
}  // namespace qkv

// Released pages leave the resident set, and their bytes read as before.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "base/file.h"
#include "base/temp_folder.h"

namespace qkv {
namespace {

// The third number of statm: resident pages that belong to files.
size_t resident_file_pages() {
  const std::string text = read_file("/proc/self/statm", 4096);
  size_t spaces = 0, at = 0;
  while (spaces < 2) spaces += text[at++] == ' ' ? 1U : 0U;
  size_t pages = 0;
  for (; text[at] >= '0' && text[at] <= '9'; ++at) pages = pages * 10 + static_cast<size_t>(text[at] - '0');
  return pages;
}

size_t sum_of(std::span<const std::byte> bytes) {
  size_t sum = 0;
  for (const std::byte b : bytes) sum += std::to_integer<size_t>(b);
  return sum;
}

TEST(MappedFile, GivesPagesBackAndReadsThemAgain) {
  constexpr size_t kPages = 4096, kPage = 4096;
  const TempFolder folder;
  const MappedFile file(folder.write("m", std::string(kPages * kPage, '\3')));
  EXPECT_EQ(sum_of(file.bytes()), 3 * kPages * kPage);
  const size_t before = resident_file_pages();

  // From the middle of a page to the middle of another; the parts around it may go too.
  const auto middle = file.bytes().subspan(kPage / 2, (kPages - 1) * kPage);
  file.release(middle);
  const size_t after = resident_file_pages();
  EXPECT_LT(after + kPages * 9 / 10, before) << before << " pages, then " << after;
  EXPECT_EQ(sum_of(file.bytes()), 3 * kPages * kPage);
}

TEST(MappedFile, LeavesAloneWhatIsNotItsOwn) {
  const TempFolder folder;
  const MappedFile file(folder.write("m", std::string(9000, '\1'))), empty(folder.write("e", ""));
  std::string own(100'000, 'x');
  const auto bytes = std::as_bytes(std::span(own));
  file.release(bytes);
  file.release({});
  file.release({file.bytes().data(), 9001});
  file.release({file.bytes().data() + 8999, 2});
  empty.release(bytes);
  EXPECT_EQ(own, std::string(100'000, 'x'));
  EXPECT_EQ(sum_of(file.bytes()), 9000u);
}

// A death test: the fault ends the program.
TEST(MappedFileDeathTest, AFileThatIsShortenedIsNamed) {
  constexpr size_t kSize = 1 << 16;
  const TempFolder folder;
  const auto path = folder.write("model", std::string(kSize, '\3'));
  const MappedFile other(folder.write("other", std::string(kSize, '\3')));
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EXIT(sum_of(file.bytes()), testing::ExitedWithCode(2), "qkv: .*/model: was shortened.*\n.*hint: ");
  EXPECT_EQ(sum_of(other.bytes()), 3 * kSize);
}

// write(2) of bytes that are gone fails with EFAULT and raises nothing.
TEST(MappedFileDeathTest, AFileThatIsShortenedWhileItIsCopiedIsNamed) {
  constexpr size_t kSize = 1 << 20;
  const TempFolder folder;
  const auto path = folder.write("model", std::string(kSize, '\3'));
  const MappedFile file(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EXIT(write_file_atomic(folder.path() / "copy", file.bytes()), testing::ExitedWithCode(2),
              "qkv: .*/model: was shortened");
}

#ifndef __SANITIZE_ADDRESS__  // which has a handler of its own
TEST(MappedFileDeathTest, OtherFaultsAndFilesNoLongerMappedAreLeftAlone) {
  const TempFolder folder;
  const auto path = folder.write("model", std::string(1 << 16, '\3'));
  { const MappedFile file(path); }
  EXPECT_EXIT(::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "^$");
}
#endif

}  // namespace
}  // namespace qkv

#include "base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/expect_error.h"
#include "base/temp_folder.h"

namespace qkv {
namespace {

constexpr size_t kLimit = 1 << 20;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int entries(const std::filesystem::path& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(ReadFile, GivesEveryByte) {
  const TempFolder folder;
  std::string content;
  for (int i = 0; i < 100'000; ++i) content.push_back(static_cast<char>(i * 7));
  EXPECT_EQ(read_file(folder.write("数据.bin", content), kLimit), content);
  EXPECT_EQ(read_file(folder.write("empty", ""), kLimit), "");
}

TEST(ReadFile, TheLimitIsExact) {
  const TempFolder folder;
  const auto path = folder.write("x", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  expect_error([&] { read_file(path, 4); }, {path.string(), "5 bytes", "is 4"});
}

TEST(ReadFile, ReadsFilesThatHideTheirSize) {
  EXPECT_NE(read_file("/proc/self/status", kLimit).find("Pid:\t" + std::to_string(::getpid())), std::string::npos);
  expect_error([] { read_file("/proc/self/status", 10); }, {"/proc/self/status", "more than 10 bytes"});
  expect_error([] { read_file("/dev/zero", 100'000); }, {"/dev/zero", "more than 100000 bytes"});
}

TEST(ReadFile, MissingFilesAndFoldersAreErrors) {
  const TempFolder folder;
  expect_error([&] { read_file(folder.path() / "none", kLimit); },
               {(folder.path() / "none").string(), std::strerror(ENOENT)});
  expect_error([&] { read_file(folder.path(), kLimit); }, {folder.path().string(), "folder"});
}

TEST(MappedFile, ShowsTheBytes) {
  const TempFolder folder;
  const auto path = folder.write("weights", "some weights");
  const MappedFile file(path);
  EXPECT_EQ(text_of(file.bytes()), "some weights");
  EXPECT_EQ(file.name(), path.string());
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const TempFolder folder;
  const MappedFile file(folder.write("empty", ""));
  EXPECT_TRUE(file.bytes().empty());
}

TEST(MappedFile, Moves) {
  const TempFolder folder;
  static_assert(!std::is_copy_constructible_v<MappedFile> && !std::is_copy_assignable_v<MappedFile>);
  MappedFile a(folder.write("a", "content a"));
  const std::byte* where = a.bytes().data();
  MappedFile b(std::move(a));
  EXPECT_EQ(b.bytes().data(), where);
  MappedFile c(folder.write("c", "content c"));
  c = std::move(b);
  EXPECT_EQ(text_of(c.bytes()), "content a");
  EXPECT_EQ(c.name(), (folder.path() / "a").string());
}

TEST(MappedFile, KeepsNoDescriptorAndUnmaps) {
  const TempFolder folder;
  const auto path = folder.write("x", "content");
  const auto mappings = [&] {
    const std::string maps = read_file("/proc/self/maps", 64 * kLimit);
    return maps.find(path.string()) != std::string::npos;
  };
  {
    const int before = entries("/proc/self/fd");
    const MappedFile file(path);
    EXPECT_EQ(entries("/proc/self/fd"), before);
    EXPECT_TRUE(mappings());
  }
  EXPECT_FALSE(mappings());
}

TEST(MappedFile, MissingFilesFoldersAndPipesAreErrors) {
  const TempFolder folder;
  expect_error([&] { MappedFile(folder.path() / "none"); }, {"none", std::strerror(ENOENT)});
  expect_error([&] { MappedFile(folder.path()); }, {folder.path().string(), "folder"});
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error([&] { MappedFile{pipe}; }, {pipe.string(), "must be a file"});  // and does not wait for a writer
}

TEST(WriteFile, WritesReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  const auto path = folder.path() / "模型.json";
  for (const std::string& content : {std::string("first"), std::string(), std::string(3'000'000, 'x')}) {
    write_file_atomic(path, bytes_of(content));
    EXPECT_EQ(read_file(path, 2 * 3'000'000), content);
    EXPECT_EQ(entries(folder.path()), 1);
  }
}

TEST(WriteFile, ANameWithoutFolderGoesToTheCurrentOne) {
  const TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomic("plain", bytes_of("here"));
  std::filesystem::current_path(before);
  EXPECT_EQ(read_file(folder.path() / "plain", kLimit), "here");
}

TEST(WriteFile, ObeysTheUmask) {
  const TempFolder folder;
  const auto path = folder.path() / "x";
  const mode_t before = ::umask(027);
  write_file_atomic(path, bytes_of("x"));
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST(WriteFile, AMissingFolderIsAnError) {
  const TempFolder folder;
  const auto path = folder.path() / "none" / "x";
  expect_error([&] { write_file_atomic(path, bytes_of("12345")); }, {path.string(), "5 bytes", std::strerror(ENOENT)});
}

TEST(WriteFile, AFolderInTheWayStaysAndTheTemporaryGoes) {
  const TempFolder folder;
  const auto path = folder.write("target/inside", "kept").parent_path();
  expect_error([&] { write_file_atomic(path, bytes_of("12345")); }, {path.string(), "5 bytes", std::strerror(EISDIR)});
  EXPECT_EQ(entries(folder.path()), 1);
  EXPECT_EQ(read_file(path / "inside", kLimit), "kept");
}

// A child that may not write files beyond 100 kB stands for a full disk: the write succeeds in part, then fails.
TEST(WriteFile, AFullDiskKeepsTheOldContentAndRemovesTheTemporary) {
  const TempFolder folder;
  const auto path = folder.write("x", "old content");
  std::fflush(nullptr);  // the child must not print the parent's text again
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto error = error_of([&] { write_file_atomic(path, bytes_of(std::string(300'000, 'x'))); });
    const bool good = error && error->message().find(path.string()) != std::string::npos &&
                      error->message().find("300000 bytes") != std::string::npos &&
                      error->message().find(std::strerror(EFBIG)) != std::string::npos;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(read_file(path, kLimit), "old content");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(WriteFile, ALeftoverOfAKilledProcessIsNoObstacle) {
  const TempFolder folder;
  for (int i = 0; i < 1000; ++i)
    folder.write(kTemporaryPrefix + std::to_string(::getpid()) + "-" + std::to_string(i), "");
  write_file_atomic(folder.path() / "x", bytes_of("new"));
  EXPECT_EQ(read_file(folder.path() / "x", kLimit), "new");
  EXPECT_EQ(entries(folder.path()), 1001);
}

// Whoever reads while another writes sees one whole content or the other.
TEST(WriteFile, ReadersNeverSeeHalfAFile) {
  const TempFolder folder;
  const auto path = folder.path() / "x";
  const std::string one(50'000, '1'), two(80'000, '2');
  write_file_atomic(path, bytes_of(one));
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) write_file_atomic(path, bytes_of(i % 2 == 0 ? two : one));
  });
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(path, kLimit);
    EXPECT_TRUE(seen == one || seen == two) << seen.size() << " bytes";
  }
  writer.join();
}

}  // namespace
}  // namespace qkv

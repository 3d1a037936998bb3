#include "base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
  expect_error([] { read_text("/dev/zero", 100'000); }, {"/dev/zero", "more than 100000 bytes"});
}

TEST(ReadFile, RefusesPipesAndDevices) {
  const TempFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error([&] { read_file(pipe, kLimit); }, {pipe.string(), "must be a file"});  // and does not wait for a writer
  expect_error([] { read_file("/dev/zero", kLimit); }, {"/dev/zero", "must be a file"});
}

TEST(ReadText, ReadsPipesToTheEnd) {
  const TempFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string content(300'000, 'x');
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << content; });
  EXPECT_EQ(read_text(pipe, kLimit), content);
  writer.join();
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
  expect_error([&] { write_file_atomic(path, bytes_of("12345")); }, {path.string(), std::strerror(ENOENT)});
}

TEST(WriteFile, AFolderInTheWayStaysAndTheTemporaryGoes) {
  const TempFolder folder;
  const auto path = folder.write("target/inside", "kept").parent_path();
  expect_error([&] { write_file_atomic(path, bytes_of("12345")); }, {path.string(), "is a folder"});
  EXPECT_EQ(entries(folder.path()), 1);
  EXPECT_EQ(read_file(path / "inside", kLimit), "kept");
}

// A child with a file size limit of 100 kB simulates a full disk: the write succeeds in part, then fails. True if
// `good` returned true there.
template <class Call>
bool on_a_full_disk(const Call& good) {
  std::fflush(nullptr);  // the child must not print the parent's text again
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(good() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool says(const std::optional<Error>& error, std::initializer_list<std::string_view> parts) {
  return error && std::all_of(parts.begin(), parts.end(),
                              [&](std::string_view part) { return error->message().find(part) != std::string::npos; });
}

TEST(WriteFile, AFullDiskKeepsTheOldContentAndRemovesTheTemporary) {
  const TempFolder folder;
  const auto path = folder.write("x", "old content");
  EXPECT_TRUE(on_a_full_disk([&] {
    const auto error = error_of([&] { write_file_atomic(path, bytes_of(std::string(300'000, 'x'))); });
    return says(error, {path.string(), "300000 bytes", std::strerror(EFBIG)});
  }));
  EXPECT_EQ(read_file(path, kLimit), "old content");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, PiecesOfAllSizesComeOutInOrder) {
  const TempFolder folder;
  const auto path = folder.write("x", "old content");
  std::string all;
  {
    AtomicFile file(path);
    for (const size_t size : std::initializer_list<size_t>{0, 1, 7, 65'535, 65'536, 2, 65'537, 300'000, 3}) {
      const std::string piece(size, static_cast<char>('a' + size % 26));
      file.write(bytes_of(piece));
      all += piece;
      EXPECT_EQ(file.size(), all.size());
    }
    EXPECT_EQ(read_file(path, kLimit), "old content");
    file.commit();
  }
  EXPECT_EQ(read_file(path, kLimit), all);
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, WithoutCommitNothingHappened) {
  const TempFolder folder;
  const auto path = folder.write("x", "old content");
  const int descriptors = entries("/proc/self/fd");
  {
    AtomicFile file(path);
    file.write(bytes_of(std::string(100'000, 'x')));
    EXPECT_EQ(entries(folder.path()), 2);
  }
  EXPECT_EQ(read_file(path, kLimit), "old content");
  EXPECT_EQ(entries(folder.path()), 1);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
}

TEST(AtomicFile, AFullDiskEndsItForGood) {
  const TempFolder folder;
  const auto path = folder.write("x", "old content");
  EXPECT_TRUE(on_a_full_disk([&] {
    AtomicFile file(path);
    file.write(bytes_of(std::string(99'000, 'x')));
    file.write(bytes_of(std::string(2'000, 'y')));  // buffered: no error yet
    const bool fails = says(error_of([&] { file.commit(); }), {path.string(), "101000 bytes", std::strerror(EFBIG)});
    const bool gone = entries(folder.path()) == 1;
    const auto again = error_of([&] { file.commit(); });
    return fails && gone && again && again->kind() == Error::Kind::internal;
  }));
  EXPECT_EQ(read_file(path, kLimit), "old content");
}

TEST(AtomicFolder, AppearsWholeUnderItsName) {
  const TempFolder folder;
  const auto path = folder.path() / "数据";
  {
    AtomicFolder made(path / "");  // a slash at the end is no other name
    write_file_atomic(made.path() / "inside", bytes_of("text"));
    EXPECT_FALSE(std::filesystem::exists(path));
    made.commit();
  }
  EXPECT_EQ(read_file(path / "inside", kLimit), "text");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFolder, WithoutCommitNothingHappened) {
  const TempFolder folder;
  {
    AtomicFolder made(folder.path() / "out");
    write_file_atomic(made.path() / "inside", bytes_of("text"));
    EXPECT_EQ(entries(folder.path()), 1);
  }
  EXPECT_EQ(entries(folder.path()), 0);
}

TEST(AtomicFolder, ErrorsNameTheFinalFolder) {
  const TempFolder folder;
  const auto path = folder.path() / "out";
  AtomicFolder made(path);
  const auto error = error_of([&] { write_file_atomic(made.path() / "none" / "file", bytes_of("x")); });
  ASSERT_TRUE(error);
  for (const std::string& text : {error->message(), error->hint()}) {
    EXPECT_EQ(text.find(kTemporaryPrefix), std::string::npos) << text;
    EXPECT_NE(text.find((path / "none").string()), std::string::npos) << text;
  }
  made.commit();
}

TEST(AtomicFolder, NeverReplacesWhatIsThere) {
  const TempFolder folder;
  const auto file = folder.write("x", "kept");
  expect_error([&] { AtomicFolder{file}; }, {file.string(), "exists already"});
  const auto late = folder.path() / "late";
  AtomicFolder made(late);
  std::filesystem::create_directory(late);  // empty: a plain rename would take its place
  expect_error([&] { made.commit(); }, {late.string(), std::strerror(EEXIST)});
  expect_error([&] { AtomicFolder{folder.path() / "none" / "x"}; }, {"none", std::strerror(ENOENT)});
}

// A concurrent reader sees the old content or the new, complete.
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

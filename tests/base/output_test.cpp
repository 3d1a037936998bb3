// Where outputs go: links, devices, pipes; temporaries of processes that were killed; checks before the work.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/output_path.h"
#include "base/temp_folder.h"
#include "base/temporaries.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMost = 1 << 20;

std::span<const std::byte> as_output(std::string_view text) {
  return std::as_bytes(std::span(text));
}

int count_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

// `work` in a child process; how it ended, as waitpid says.
int in_a_child(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(OutputLinks, StayAndTheirTargetIsReplaced) {
  const TempFolder folder;
  fs::create_directory(folder.path() / "elsewhere");
  const fs::path link = folder.path() / "link", target = folder.path() / "elsewhere" / "target";
  fs::create_symlink("between", link);
  fs::create_symlink("elsewhere/target", folder.path() / "between");
  for (const char* text : {"made", "replaced"}) {  // the target is absent first
    write_file_atomic(link, as_output(text));
    EXPECT_EQ(read_file(target, kMost), text);
    EXPECT_FALSE(fs::is_symlink(target));
    EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(folder.path() / "between"));
  }
  EXPECT_EQ(count_in(folder.path()), 3);
  EXPECT_EQ(count_in(folder.path() / "elsewhere"), 1);
}

TEST(OutputLinks, InACircleAreAnError) {
  const TempFolder folder;
  const fs::path link = folder.path() / "a";
  fs::create_symlink("b", link);
  fs::create_symlink("a", folder.path() / "b");
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] { write_file_atomic(link, {}); }, [&] { AtomicFolder{link}; }, [&] { check_output_file(link); },
           [&] { check_output_folder(link); }}) {
    expect_error(use, {link.string(), std::strerror(ELOOP)});
  }
  EXPECT_EQ(count_in(folder.path()), 2);
}

TEST(OutputLinks, OfFoldersLeadToWhereTheyAreMade) {
  const TempFolder folder;
  fs::create_directory(folder.path() / "elsewhere");
  const fs::path link = folder.path() / "link";
  fs::create_symlink("elsewhere/made", link);
  check_output_folder(link);
  AtomicFolder made(link);
  write_file_atomic(made.path() / "inside", as_output("text"));
  made.commit();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(folder.path() / "elsewhere" / "made" / "inside", kMost), "text");
  expect_error([&] { AtomicFolder{link}; }, {link.string(), "elsewhere/made", "exists already"});
  expect_error([&] { AtomicFolder{"/dev/null"}; }, {"/dev/null", "device"});
}

// By links: a bug must not replace the machine's devices.
TEST(OutputStreams, DevicesAreWrittenTo) {
  const TempFolder folder;
  const fs::path null = folder.path() / "null", full = folder.path() / "full";
  fs::create_symlink("/dev/null", null);
  fs::create_symlink("/dev/full", full);
  check_output_file(null);
  check_output_file(null, Existing::refused);
  write_file_atomic(null, as_output("text"));
  expect_error([&] { write_file_atomic(full, as_output("text")); }, {"/dev/full", "4 bytes", std::strerror(ENOSPC)});
  EXPECT_TRUE(fs::is_symlink(null) && fs::is_symlink(full));
  EXPECT_EQ(count_in(folder.path()), 2);
}

TEST(OutputStreams, PipesAreWrittenTo) {
  const TempFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  check_output_file(pipe);  // and does not wait for a reader
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  write_file_atomic(pipe, as_output("text"));
  std::string read(10, ' ');
  EXPECT_EQ(::read(reader, read.data(), read.size()), 4);
  EXPECT_EQ(read.substr(0, 4), "text");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(count_in(folder.path()), 1);
}

// cmd --out /dev/stdout >file: what else goes to the file must not be overwritten.
TEST(OutputStreams, OwnDescriptorsKeepTheirPosition) {
  const TempFolder folder;
  const fs::path file = folder.write("x", "");
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  write_file_atomic("/dev/fd/" + std::to_string(fd), as_output("report "));
  ASSERT_EQ(::write(fd, "after", 5), 5);
  ::close(fd);
  EXPECT_EQ(read_file(file, kMost), "before report after");
}

TEST(OutputChecks, SayWhatIsWrongBeforeTheWork) {
  const TempFolder folder;
  const fs::path file = folder.write("file", "old");
  check_output_file(file);
  check_output_file(folder.path() / "new");
  check_output_folder(folder.path() / "new/");
  EXPECT_EQ(count_in(folder.path()), 1);
  expect_error([&] { check_output_file(file, Existing::refused); }, {file.string(), "exists already"});
  expect_error([&] { check_output_file(folder.path()); }, {folder.path().string(), "is a folder"});
  expect_error([&] { check_output_file(folder.path() / "none" / "x"); }, {"none/x", std::strerror(ENOENT)});
  expect_error([&] { check_output_file(folder.path() / "new/"); }, {"new/", "is a folder"});
  expect_error([&] { check_output_file(file / "x"); }, {"file/x", std::strerror(ENOTDIR)});
  expect_error([&] { check_output_file(folder.path() / std::string(300, 'x')); }, {std::strerror(ENAMETOOLONG)});
  expect_error([&] { check_output_file(""); }, {"empty"});
  expect_error([&] { check_output_folder(file); }, {file.string(), "exists already"});
  expect_error([&] { check_output_folder(folder.path() / "none" / "x"); }, {"none/x", std::strerror(ENOENT)});
}

TEST(OutputChecks, SeePermissions) {
  const TempFolder folder;
  fs::create_directory(folder.path() / "closed");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder.path() / "closed").c_str(), 0555), 0);
  const int status = in_a_child([&] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    for (const auto check : {+[](const fs::path& path) { check_output_file(path); }, +check_output_folder}) {
      const auto error = error_of([&] { check(folder.path() / "closed" / "x"); });
      if (!error || error->message().find(std::strerror(EACCES)) == std::string::npos) ::_exit(1);
    }
  });
  EXPECT_EQ(status, 0);
}

// --- temporaries -----------------------------------------------------------------------------------------------------

class EndedBySignal : public testing::TestWithParam<int> {};

TEST_P(EndedBySignal, LeavesNoTemporaries) {
  const TempFolder folder;
  const fs::path old = folder.write("old", "kept");
  const int status = in_a_child([&] {
    ::signal(GetParam(), SIG_DFL);
    remove_temporaries_on_signals();
    AtomicFile file(old);
    file.write(as_output(std::string(200'000, 'x')));
    write_file_atomic(folder.path() / "done", as_output("done"));
    AtomicFolder made(folder.path() / "folder");
    fs::create_directories(made.path() / "a" / "b");
    for (int i = 0; i < 200; ++i) {
      std::ofstream(made.path() / "a" / "b" / (std::string(100, 'n') + std::to_string(i))) << 'x';
    }
    fs::create_symlink(folder.path() / "done", made.path() / "a" / "link");
    AtomicFile inside(made.path() / "inside");
    AtomicFolder committed(folder.path() / "committed");
    committed.commit();
    if (count_in(folder.path()) != 5) ::_exit(1);
    ::raise(GetParam());
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), GetParam());
  EXPECT_EQ(read_file(old, kMost), "kept");
  EXPECT_EQ(read_file(folder.path() / "done", kMost), "done");
  EXPECT_EQ(count_in(folder.path()), 3);  // old, done, committed
}

INSTANTIATE_TEST_SUITE_P(Temporaries, EndedBySignal, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(Temporaries, AnIgnoredSignalStaysIgnored) {
  EXPECT_EQ(in_a_child([] {
              ::signal(SIGHUP, SIG_IGN);  // nohup
              remove_temporaries_on_signals();
              ::raise(SIGHUP);
            }),
            0);
}

TEST(Temporaries, OfAKilledProcessGoWithTheNextWrite) {
  for (const bool next_is_folder : {false, true}) {
    const TempFolder folder;
    const fs::path other = folder.write(std::string(kTemporaryPrefix) + "00000000-1-0", "of another machine");
    const int status = in_a_child([&] {
      AtomicFile file(folder.path() / "x");
      AtomicFolder made(folder.path() / "y");
      write_file_atomic(made.path() / "inside", as_output("text"));
      ::raise(SIGKILL);
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(count_in(folder.path()), 3);
    if (next_is_folder) {
      AtomicFolder(folder.path() / "new").commit();
    } else {
      write_file_atomic(folder.path() / "new", as_output("new"));
    }
    EXPECT_EQ(count_in(folder.path()), 2);
    EXPECT_TRUE(fs::exists(other) && fs::exists(folder.path() / "new"));
  }
}

TEST(Temporaries, OfALivingProcessStay) {
  const TempFolder folder;
  AtomicFile file(folder.path() / "x");
  AtomicFolder made(folder.path() / "y");
  file.write(as_output("whole"));
  EXPECT_EQ(in_a_child([&] { write_file_atomic(folder.path() / "." / "z", as_output("z")); }), 0);
  write_file_atomic(folder.path() / "." / "z", as_output("z"));  // "." is another name: this process looks again
  EXPECT_EQ(count_in(folder.path()), 3);
  file.commit();
  made.commit();
  EXPECT_EQ(read_file(folder.path() / "x", kMost), "whole");
  EXPECT_EQ(count_in(folder.path()), 3);
}

}  // namespace
}  // namespace qkv

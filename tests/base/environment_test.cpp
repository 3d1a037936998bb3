#include "base/environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/memory.h"

namespace qkv {
namespace {

constexpr rlim_t kAddresses = rlim_t{1} << 30;

template <class Call>
std::optional<Error> failure_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return environment_error(failure);
  }
  return std::nullopt;
}

// The child's exit code and what `call` returned there, for what must not happen to this process.
template <class Call>
std::pair<int, std::string> in_child(const Call& call) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {-1, ""};
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = call();
    ::_exit(::write(ends[1], said.data(), said.size()) == std::ssize(said) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t got = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  said.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status, said};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(Environment, AFailureOfFilesNamesThePathAndTheCall) {
  const auto error = failure_of([] { std::filesystem::directory_iterator("/nowhere/at/all"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Error::Kind::input);
  EXPECT_EQ(error->message(), "/nowhere/at/all: No such file or directory (directory iterator cannot open directory)");
  EXPECT_FALSE(error->hint().empty());
}

TEST(Environment, ThreadsThatAreRefusedAreOfTheEnvironmentAndMisuseIsNot) {
  const auto error = failure_of([] { throw std::system_error(EAGAIN, std::generic_category()); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(contains(error->hint(), "ulimit -u")) << error->hint();
  EXPECT_FALSE(failure_of([] { throw std::system_error(EDEADLK, std::generic_category()); }));
  EXPECT_FALSE(failure_of([] { throw std::runtime_error("who knows"); }));
  EXPECT_FALSE(failure_of([] { throw std::out_of_range("who knows"); }));
}

#ifndef __SANITIZE_ADDRESS__  // it ends the program instead, needs far more addresses, and its operator new calls no handler
TEST(Environment, MoreThanAnyMachineHasIsOfTheEnvironment) {
  const auto error = failure_of([] { std::vector<double>().reserve(SIZE_MAX / 16); });
  ASSERT_TRUE(error);
  EXPECT_TRUE(contains(error->message(), "out of memory")) << error->message();
}

TEST(Environment, OutOfMemorySaysTheLimitAndWhatWasInUse) {
  const auto [status, said] = in_child([]() -> std::string {
    const rlimit limit{kAddresses, kAddresses};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return "no limit";
    note_failed_allocations();
    const auto error = failure_of([] {
      std::vector<std::string> kept;
      while (true) kept.emplace_back(64 << 20, 'x');
    });
    return error ? error->message() : "no error";
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(contains(said, "limited to 1024.0 MiB (ulimit -v)")) << said;
  double used = 0;
  ASSERT_EQ(std::sscanf(said.c_str() + said.find("of which"), "of which %lf MiB", &used), 1) << said;
  EXPECT_GT(used, 900) << "after unwinding it would be little: " << said;
}
#endif

// What the standard library says is the name of a function of its own.
TEST(Environment, ALengthBeyondAllMemoryIsSaidInOurWords) {
  const std::optional<Error> error = failure_of([] { std::vector<int>().reserve(SIZE_MAX); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), Error::Kind::input);
  EXPECT_FALSE(contains(error->what(), "vector")) << error->what();
  EXPECT_TRUE(contains(error->hint(), "too large")) << error->hint();
}

TEST(Environment, ClosedDescriptorsAreOpened) {
  const auto [status, said] = in_child([]() -> std::string {
    for (const int fd : {0, 1, 2}) ::close(fd);
    open_standard_descriptors();
    std::string found;
    char byte = 0;
    found += ::read(0, &byte, 1) == 0 ? "end " : "bad ";
    for (const int fd : {1, 2}) found += ::write(fd, "x", 1) == 1 ? "good " : "bad ";
    return found + (::open("/dev/null", O_RDONLY) > 2 ? "free" : "taken");
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "end good good free");
}

TEST(Environment, TextThatIsNotUtf8IsAnErrorOfInputThatNamesIt) {
  const Json recipe{{"data", {{"files", {"good.txt", "caf\xE9.txt"}}}}};
  try {
    recipe.dump();
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::input);
    EXPECT_TRUE(contains(error.message(), "'caf\\xe9.txt'")) << error.message();
  }
  EXPECT_EQ(recipe.dump(-1, ' ', false, Json::error_handler_t::ignore), R"({"data":{"files":["good.txt","caf.txt"]}})");
}

}  // namespace
}  // namespace qkv

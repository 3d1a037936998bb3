#include "base/path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/expect_error.h"
#include "base/temp_folder.h"

namespace qkv {
namespace {

TEST(Path, TellsFilesFoldersPipesAndNothing) {
  const TempFolder folder;
  const auto file = folder.write("file", "x");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("file", folder.path() / "link");
  std::filesystem::create_symlink("nothing", folder.path() / "dangling");
  EXPECT_EQ(kind_of_path(file), PathKind::file);
  EXPECT_EQ(kind_of_path(folder.path() / "link"), PathKind::file);
  EXPECT_EQ(kind_of_path(folder.path()), PathKind::folder);
  EXPECT_EQ(kind_of_path(pipe), PathKind::other);
  for (const char* name : {"none", "dangling", "file/below"}) {
    EXPECT_EQ(kind_of_path(folder.path() / name), PathKind::absent) << name;
  }
  EXPECT_TRUE(is_there(pipe) && !is_file(pipe) && !is_folder(pipe));
}

TEST(Path, WhatCannotBeLookedUpIsAnErrorAndNotAbsent) {
  const TempFolder folder;
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  expect_error([&] { is_there(folder.path() / "loop"); }, {"loop", std::strerror(ELOOP)});
  expect_error([&] { is_there(folder.path() / std::string(300, 'x')); }, {std::strerror(ENAMETOOLONG)});
}

// In a child, as root may look at everything.
TEST(Path, AForbiddenPlaceIsNotAnEmptyOne) {
  const TempFolder folder;
  folder.write("locked/file", "x");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder.path() / "locked", std::filesystem::perms(0));
  const auto forbidden = [&](const auto& call) {
    const auto error = error_of(call);
    return error && error->message().find(std::strerror(EACCES)) != std::string::npos &&
           error->hint().find("permissions") != std::string::npos;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);
    const bool looked = forbidden([&] { is_there(folder.path() / "locked" / "file"); });
    ::_exit(looked && forbidden([&] { folder_entries(folder.path() / "locked"); }) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::filesystem::permissions(folder.path() / "locked", std::filesystem::perms(0700));
}

TEST(Path, ListsAFolderInOrder) {
  const TempFolder folder;
  for (const char* name : {"b", "a", "c"}) folder.write(name, "");
  std::string names;
  for (const auto& entry : folder_entries(folder.path())) names += entry.filename().string();
  EXPECT_EQ(names, "abc");
  expect_error([&] { folder_entries(folder.path() / "none"); }, {"none", std::strerror(ENOENT)});
}

}  // namespace
}  // namespace qkv

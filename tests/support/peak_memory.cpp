#include "support/peak_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "base/error.h"

namespace qkv::test {
namespace {

size_t status_bytes(const std::string& key) {  // of /proc/self/status, which counts in KiB
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

struct Measured {
  uint64_t rise = 0;
  bool refused = false;
};

}  // namespace

size_t peak_memory(FunctionRef<void()> work, bool* refused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kMeasures = false;
#else
  constexpr bool kMeasures = true;
#endif
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  malloc_trim(0);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    Measured measured;
    const size_t before = status_bytes("VmRSS");
    try {
      work();
    } catch (const Error&) {
      measured.refused = true;
    }
    measured.rise = kMeasures ? status_bytes("VmHWM") - before : 0;
    const bool written = write(ends[1], &measured, sizeof(measured)) == sizeof(measured);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  EXPECT_EQ(read(ends[0], &measured, sizeof(measured)), static_cast<ssize_t>(sizeof(measured)));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  if (refused != nullptr) *refused = measured.refused;
  return measured.rise;
}

}  // namespace qkv::test

#include "thread_times.h"

#include <ctime>
#include <filesystem>
#include <fstream>

namespace qkv::bench {

std::map<std::string, double> cpu_by_thread_name() {
  std::map<std::string, double> seconds;
  std::error_code failed;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    std::string name;
    double nanoseconds = 0;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    std::ifstream(thread.path() / "schedstat") >> nanoseconds;
    seconds[name] += 1e-9 * nanoseconds;
  }
  return seconds;
}

double process_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace qkv::bench

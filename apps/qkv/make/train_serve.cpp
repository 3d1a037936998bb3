#include "make/train_serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "common/interrupt.h"
#include "make/page_jobs.h"
#include "server/server.h"

namespace qkv::app {

void serve_training(const std::vector<std::string>& words, const std::string& run, const ComputeOptions& compute,
                    int port) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kForTheLastLook = std::chrono::seconds(2);
  ServerOptions options;
  options.http.port = port;
  options.log = false;
  options.jobs = page_jobs(compute, "");
  options.jobs.first = words;
  options.jobs.first_run = run;
  Server server(options);
  std::cout << fmt::format("watch it learn: http://127.0.0.1:{}/#/training\n", server.port()) << std::flush;
  const bool stays = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  {
    const InterruptWatch interrupt({SIGINT, SIGTERM, SIGUSR1});
    const std::jthread watch([&](const std::stop_token& done) {
      std::optional<Clock::time_point> ended;
      while (!done.stop_requested() && !interrupt.seen()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (!ended && server.first_job_ended()) {
          ended = Clock::now();
          if (stays) std::cout << "the page stays until Ctrl-C\n" << std::flush;
        }
        if (ended && !stays && Clock::now() > *ended + kForTheLastLook) break;
      }
      server.stop();
    });
    server.run();
  }
  if (const int code = server.first_job_ended().value_or(kInterruptedExit); code != 0) throw ExitWith{code};
}

}  // namespace qkv::app

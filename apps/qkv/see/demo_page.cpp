#include "see/demo_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "common/interrupt.h"
#include "make/page_jobs.h"
#include "open/builtin_models.h"

namespace qkv::app {
namespace {

constexpr int kUsualPort = 8080;

bool on_terminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// With the desktop's own program. It says nothing here, and nobody waits for the browser.
void open_in_browser(const std::string& address) {
  if (!on_terminal() || is_set("CI") || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, file, "/dev/null", O_RDWR, 0);
  }
  std::string program = "xdg-open", argument = address;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), &files, nullptr, arguments, environ) == 0) {
    std::thread([child] { waitpid(child, nullptr, 0); }).detach();
  }
  posix_spawn_file_actions_destroy(&files);
}

// The usual port, so that an address stays good; any other where it is taken and none was asked for.
std::unique_ptr<Server> server_of(const DemoOptions& demo, ServerOptions options) {
  options.http.port = demo.port.value_or(kUsualPort);
  try {
    return std::make_unique<Server>(options);
  } catch (const Error&) {
    if (demo.port) throw;
    options.http.port = 0;
    return std::make_unique<Server>(options);
  }
}

std::string built_in_model() {
  try {
    return find_model("builtin:world");
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

DemoPage::DemoPage(const DemoOptions& options) : options_(options) {
  if (options.json || !(options.port || on_terminal())) return;
  ServerOptions server;
  const std::string model = built_in_model();
  built_in_ = !model.empty();
  if (built_in_) server.models = {model};
  server.open = {.threads = options.compute.threads, .device = options.compute.device()};
  server.jobs = page_jobs(options.compute, "");
  server.room.slots = 1;
  server.drain = server::Seconds(1);
  server.log = false;
  try {
    server_ = server_of(options, server);
  } catch (const Error& error) {
    std::cout << options.words("There is no page: ", "没有网页：") << error.message() << '\n';
    return;
  }
  thread_ = std::thread([this] {
    try {
      server_->run();
    } catch (const std::exception& failure) {
      log_line(Log::warn, failure.what());
    }
  });
  std::cout << options.words("The page: ", "网页：") << address() << std::endl;
  open_in_browser(address());
}

DemoPage::~DemoPage() {
  if (!server_) return;
  server_->stop();
  thread_.join();
}

std::string DemoPage::address() const {
  return fmt::format("http://127.0.0.1:{}/{}{}", server_->port(), built_in_ ? "#/" : "#/training",
                     options_.chinese() ? "?lang=zh" : "");
}

void DemoPage::training() {
  if (server_) server_->show_training(options_.run().string());
}

void DemoPage::trained() {
  if (!server_) return;
  server_->training_ended(true);
  server_->show_model("demo", (options_.run() / "last").string());
}

void DemoPage::stay() {
  if (!server_ || !on_terminal()) return;
  std::cout << fmt::format(fmt::runtime(options_.words("\nThe page stays until Ctrl-C: {}\n",
                                                       "\n网页一直开着，按 Ctrl-C 结束：{}\n")),
                           address())
            << std::flush;
  const InterruptWatch interrupt({SIGINT, SIGTERM});
  while (!interrupt.seen()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::cout << '\n';
}

}  // namespace qkv::app

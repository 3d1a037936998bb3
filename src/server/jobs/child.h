// Another process of this program, for work that takes minutes. It has memory and signals of its own and runs below the
// server's priority, so nothing that befalls it or that it needs keeps an answer waiting. When the server dies, it is
// told to stop.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace qkv::server {

class Child {
 public:
  struct Options {
    std::string program;
    std::vector<std::string> arguments;
    bool echo = false;  // what it prints goes to our own outputs too
  };
  // By a thread that lives as long as it. An Error if the system gives no process.
  explicit Child(const Options& options);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills what still runs

  // Waits for more of what it prints, or for its end, at most so long.
  void wait(std::chrono::milliseconds most);
  std::vector<std::string> take_lines();                    // of its standard output, whole
  const std::string& complaint() const { return errors_; }  // the last of its standard error
  std::optional<int> exit_code() const { return code_; }    // once it ended; 128 + the signal that killed it

  void pause();
  void go_on();
  void stop();  // asks it to save and end, once; a paused one goes on for that
  void kill();

 private:
  void read(int& from, std::string& into, int echo) const;
  void reap(bool block);

  bool echo_;
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::string text_, errors_;
  std::optional<int> code_;
  bool stopping_ = false;
};

}  // namespace qkv::server

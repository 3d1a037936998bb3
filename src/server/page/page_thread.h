// The thread that looks into models for the page. It has models of its own, so that nothing it does delays a text that
// is being written. Requests come first; what is measured over many texts runs while none waits, and lets them in
// between its passes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "server/http/http.h"

namespace qkv::server {

class PageThread {
 public:
  PageThread();
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;
  ~PageThread() { stop(); }

  static constexpr size_t kMostWaiting = 64;
  struct Stopping {};  // thrown by serve_waiting()

  // From any thread. Answers 429 if too many wait, 503 once it is stopping.
  void ask(std::shared_ptr<Exchange> exchange, std::function<HttpResponse()> answer);
  void when_idle(std::function<void()> work);
  // By work of when_idle(), between its passes.
  void serve_waiting();
  // By an answer that takes long, between its passes: others that wait are answered first. An ApiError if nobody waits
  // for this one any more.
  void give_way();
  void stop();

 private:
  struct Asked {
    std::shared_ptr<Exchange> exchange;
    std::function<HttpResponse()> answer;
  };
  void run();
  void answer(const Asked& asked);

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Asked> asked_;
  std::deque<std::function<void()>> idle_;
  bool stopping_ = false;
  const Asked* answering_ = nullptr;  // of the thread alone
  bool giving_way_ = false;
  std::thread thread_;
};

}  // namespace qkv::server

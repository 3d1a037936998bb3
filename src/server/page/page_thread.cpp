#include "server/page/page_thread.h"

#include <utility>

#include "base/log.h"
#include "server/http/api_error.h"

namespace qkv::server {

PageThread::PageThread() : thread_([this] { run(); }) {}

void PageThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PageThread::ask(std::shared_ptr<Exchange> exchange, std::function<HttpResponse()> answer) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ && asked_.size() < kMostWaiting) {
      asked_.push_back({std::move(exchange), std::move(answer)});
      more_.notify_all();
      return;
    }
  }
  ApiError error(stopping_ ? 503 : 429,
                 stopping_ ? "the server is stopping" : "too many looks at once; try again later");
  error.retry_after = 1;
  exchange->respond(error.response());
}

void PageThread::when_idle(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(work));
  }
  more_.notify_all();
}

void PageThread::answer(const Asked& asked) {
  if (asked.exchange->gone()) return;  // who types on asks again
  const Asked* const before = std::exchange(answering_, &asked);
  const auto after = [&] { answering_ = before; };
  try {
    HttpResponse made = asked.answer();
    after();
    asked.exchange->respond(std::move(made));
  } catch (const Stopping&) {
    after();
    asked.exchange->respond(ApiError(503, "the server is stopping").response());
    throw;
  } catch (...) {
    after();
    asked.exchange->respond(api_error_of(std::current_exception()).response());
  }
}

void PageThread::give_way() {
  if (!giving_way_) {  // what is answered meanwhile is answered whole
    giving_way_ = true;
    try {
      serve_waiting();
    } catch (...) {
      giving_way_ = false;
      throw;
    }
    giving_way_ = false;
  }
  if (answering_ != nullptr && answering_->exchange->gone()) throw ApiError(503, "nobody waits for this answer");
}

void PageThread::serve_waiting() {
  while (true) {
    Asked next;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) throw Stopping{};
      if (asked_.empty()) return;
      next = std::move(asked_.front());
      asked_.pop_front();
    }
    answer(next);
  }
}

void PageThread::run() {
  while (true) {
    std::function<void()> work;
    try {
      serve_waiting();
      std::unique_lock lock(mutex_);
      if (idle_.empty()) more_.wait(lock, [&] { return stopping_ || !asked_.empty() || !idle_.empty(); });
      if (stopping_ || !asked_.empty() || idle_.empty()) continue;
      work = std::move(idle_.front());
      idle_.pop_front();
      lock.unlock();
      work();
    } catch (const Stopping&) {
      break;
    } catch (const std::exception& failure) {
      log_line(Log::error, failure.what());
    }
  }
  std::deque<Asked> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(asked_);
  }
  for (const Asked& asked : left) asked.exchange->respond(ApiError(503, "the server is stopping").response());
}

}  // namespace qkv::server

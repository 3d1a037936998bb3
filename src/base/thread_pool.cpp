#include "base/thread_pool.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/path.h"

namespace qkv {
namespace {

// About 50 microseconds: longer than the gap between two ops, short enough to burn little when the work has ended.
constexpr int kSpins = 2000;

#if defined(__x86_64__)
constexpr unsigned kFlushDenormals = 0x8000 | 0x0040;  // results, and inputs

void pause_cpu() {
  _mm_pause();
}
unsigned float_mode() {
  return _mm_getcsr();
}
void set_float_mode(unsigned mode) {
  _mm_setcsr(mode);
}
#else
constexpr unsigned kFlushDenormals = 0;

void pause_cpu() {}
unsigned float_mode() {
  return 0;
}
void set_float_mode(unsigned) {}
#endif

// Flushes denormals to zero on this thread until destroyed: results must not depend on the thread.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(float_mode()) { set_float_mode(saved_ | kFlushDenormals); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals() { set_float_mode(saved_); }

 private:
  unsigned saved_;
};

// Polls for a while before the caller sleeps. On a busy machine the thread we wait for may need this CPU: yielding now
// and then makes such a run ten times faster, and costs nothing where CPUs are free.
template <class Done>
void spin(int looks, const Done& done) {
  for (int i = 1; i <= looks && !done(); ++i) {
    if (i % 128 == 0) {
      ::sched_yield();
    } else {
      pause_cpu();
    }
  }
}

// The pool whose tasks the current thread is running.
struct Current {
  const ThreadPool* pool = nullptr;
  int thread = 0;
};
thread_local Current current;

void pin_this_thread(int cpu) {
  if (cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  ::sched_setaffinity(0, sizeof set, &set);  // best effort: only speed depends on it
}

// On a busy machine the scheduler may put the caller on a worker's CPU, so that the two take turns. Moves it once to
// the CPU without a worker; it is not pinned there.
void leave_to_workers(const std::vector<int>& cpus) {
  if (cpus.empty() || cpus.front() >= CPU_SETSIZE || ::sched_getcpu() == cpus.front()) return;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      !CPU_ISSET(static_cast<size_t>(cpus.front()), &allowed)) {
    return;
  }
  pin_this_thread(cpus.front());
  ::sched_setaffinity(0, sizeof allowed, &allowed);
}

// The calling thread as thread 0 of a pool until destroyed.
class Inside {
 public:
  explicit Inside(const ThreadPool* pool) : outer_(std::exchange(current, {pool, 0})) {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { current = outer_; }

 private:
  FlushDenormals flush_;
  Current outer_;
};

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads), spins_(kSpins) {
  QKV_CHECK(threads >= 0 && threads <= kMostThreads, "the number of threads is ", threads, " but must lie in [0, ",
            kMostThreads, "]", Hint("0 means one thread for each CPU this process may use"));
  if (threads_ == 0) threads_ = default_threads();
  const std::vector<int> cpus = allowed_cpus();
  const auto allowed = static_cast<int>(cpus.size());
  if (allowed > 0 && threads_ > allowed) spins_ = 0;  // more threads than CPUs: spinning would block the others

  // With one thread per CPU, pinning workers keeps caches warm. With fewer threads the scheduler knows better which
  // CPUs are free (another pool may pin to the same ones), and under a quota a pinned worker would wait for its own CPU
  // while another idles. The caller is not ours to pin.
  const bool one_each = threads_ > 1 && threads_ == allowed;
  if (one_each && cpu_quota().value_or(allowed) >= allowed) pin_to_ = cpus;

  errors_.resize(static_cast<size_t>(threads_));
  start_workers();
}

ThreadPool::~ThreadPool() {
  stop_workers();
}

void ThreadPool::start_workers() {
  try {
    workers_.reserve(static_cast<size_t>(threads_ - 1));
    for (int thread = 1; thread < threads_; ++thread) workers_.emplace_back([this, thread] { worker(thread); });
  } catch (const std::system_error& error) {
    const size_t started = workers_.size() + 1;
    stop_workers();
    QKV_FAIL("cannot start ", threads_, " threads, only ", started, ": ", error.code().message(),
             Hint(errno_hint(error.code().value())));
  }
}

void ThreadPool::stop_workers() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::worker(int thread) {
  if (!pin_to_.empty()) pin_this_thread(pin_to_[static_cast<size_t>(thread)]);
  const FlushDenormals flush;
  current = {this, thread};
  uint32_t seen = 0;
  while (true) {
    spin(spins_, [&] { return round_.load(std::memory_order_acquire) != seen; });
    round_.wait(seen, std::memory_order_acquire);
    ++seen;  // a round never begins before every worker has finished the last one
    if (stop_) return;
    do_share(thread);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

void ThreadPool::do_share(int thread) noexcept {
  // t * tasks / n, without the overflow of t * tasks
  const int64_t whole = tasks_ / threads_, rest = tasks_ % threads_;
  const auto start_of = [&](int64_t t) { return t * whole + t * rest / threads_; };
  try {
    for (int64_t task = start_of(thread), end = start_of(thread + 1); task < end; ++task) (*body_)(task, thread);
  } catch (...) {
    errors_[static_cast<size_t>(thread)] = std::current_exception();
  }
}

void ThreadPool::wait_for_workers() {
  spin(spins_, [&] { return busy_.load(std::memory_order_acquire) == 0; });
  for (int left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire)) {
    busy_.wait(left, std::memory_order_acquire);
  }
}

void ThreadPool::run(int64_t tasks, FunctionRef<void(int64_t task, int thread)> body) {
  QKV_ASSERT(tasks >= 0, "ThreadPool::run: the number of tasks is ", tasks);
  if (current.pool == this) {
    for (int64_t task = 0; task < tasks; ++task) body(task, current.thread);
    return;
  }
  if (tasks == 0) return;

  const std::lock_guard lock(one_run_);
  if (tasks == 1 || threads_ == 1) {  // waking a worker takes longer than most single tasks
    const Inside inside(this);
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  leave_to_workers(pin_to_);
  tasks_ = tasks;
  body_ = &body;
  busy_.store(threads_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  {
    const Inside inside(this);
    do_share(0);
  }
  wait_for_workers();

  // Shares are in order of tasks, so the first error by thread is the first by task.
  std::exception_ptr first;
  for (std::exception_ptr& error : errors_) {
    if (std::exception_ptr taken = std::exchange(error, nullptr); taken && !first) first = std::move(taken);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace qkv

// Comm over MPI, compiled only if MPI was found.
#if defined(QKV_WITH_MPI)

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "dist/comm.h"

namespace qkv {
namespace {

// Aborts the job if this process spends too long inside one operation: after a rank died the others would wait for
// ever.
class Watchdog {
 public:
  Watchdog(int rank, double limit) : rank_(rank), limit_(limit), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  class Inside {
   public:
    Inside(Watchdog& dog, const char* op) : dog_(dog) { dog_.enter(op); }
    ~Inside() { dog_.enter(nullptr); }

   private:
    Watchdog& dog_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  void enter(const char* op) {
    const std::lock_guard lock(mutex_);
    op_ = op;
    since_ = Clock::now();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      changed_.wait_for(lock, std::chrono::milliseconds(500));
      const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
      if (over_ || op_ == nullptr || seconds < limit_) continue;
      log_line(Log::error, "rank " + std::to_string(rank_) + " has waited " +
                               std::to_string(static_cast<int>(seconds)) + " s in " + op_ +
                               " for the other ranks; the job is ended");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }

  int rank_;
  double limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  const char* op_ = nullptr;
  Clock::time_point since_{};
  std::thread thread_;
};

double hang_seconds() {
  constexpr double kDefault = 600;
  const char* given = std::getenv("QKV_HANG_SECONDS");
  if (given == nullptr) return kDefault;
  double seconds = 0;
  const auto [end, error] = std::from_chars(given, given + std::strlen(given), seconds);
  return error == std::errc() && *end == '\0' && seconds > 0 ? seconds : kDefault;
}

class MpiComm final : public Comm {
 public:
  MpiComm() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    dog_ = std::make_unique<Watchdog>(rank_, hang_seconds());
  }
  ~MpiComm() override {
    dog_.reset();
    MPI_Finalize();
  }

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void abort_all() override { MPI_Abort(MPI_COMM_WORLD, 2); }

  void barrier() override {
    const Watchdog::Inside inside(*dog_, "barrier");
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    std::vector<uint64_t> sizes(static_cast<size_t>(size_));
    const uint64_t own = mine.size();
    {
      const Watchdog::Inside inside(*dog_, "all_gather");
      MPI_Allgather(&own, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    }
    std::vector<std::vector<std::byte>> all;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    for (const uint64_t size : sizes) {
      all.emplace_back(size);
      send.push_back(mine);
    }
    for (std::vector<std::byte>& each : all) receive.emplace_back(each);
    exchange(send, receive);
    return all;
  }

  void exchange(std::span<const std::span<const std::byte>> send,
                std::span<const std::span<std::byte>> receive) override {
    const Watchdog::Inside inside(*dog_, "exchange");
    const auto me = static_cast<size_t>(rank_);
    QKV_ASSERT(send.size() == static_cast<size_t>(size_) && receive.size() == send.size() &&
                   send[me].size() == receive[me].size(),
               "an exchange of ", send.size(), " parts among ", size_, " ranks");
    std::vector<MPI_Request> waiting;
    for (size_t r = 0; r < receive.size(); ++r) {
      if (r == me) continue;
      for (size_t at = 0; at < receive[r].size(); at += kPiece) {
        const size_t piece = std::min(kPiece, receive[r].size() - at);
        MPI_Irecv(receive[r].data() + at, static_cast<int>(piece), MPI_BYTE, static_cast<int>(r), 0, MPI_COMM_WORLD,
                  &waiting.emplace_back());
      }
    }
    for (size_t r = 0; r < send.size(); ++r) {
      if (r == me) continue;
      for (size_t at = 0; at < send[r].size(); at += kPiece) {
        const size_t piece = std::min(kPiece, send[r].size() - at);
        MPI_Isend(send[r].data() + at, static_cast<int>(piece), MPI_BYTE, static_cast<int>(r), 0, MPI_COMM_WORLD,
                  &waiting.emplace_back());
      }
    }
    std::copy(send[me].begin(), send[me].end(), receive[me].begin());
    MPI_Waitall(static_cast<int>(waiting.size()), waiting.data(), MPI_STATUSES_IGNORE);
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 30;  // MPI counts in int

  int rank_ = 0, size_ = 1;
  std::unique_ptr<Watchdog> dog_;
};

}  // namespace

Comm& world_comm() {
  // Without mpirun there are no other ranks: MPI is not initialised.
  const bool launched = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
                        std::getenv("PMIX_RANK") != nullptr;
  if (!launched) return self_comm();
  static MpiComm comm;
  return comm;
}

}  // namespace qkv

#endif

// Comm over MPI, through the functions of a module that is loaded under mpirun (mpi_module.h).
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/program_path.h"
#include "dist/comm.h"
#include "dist/mpi_module.h"

namespace qkv {
namespace {

// Aborts the job if this process spends too long inside one operation: after a rank died the others would wait for
// ever.
class Watchdog {
 public:
  Watchdog(const MpiFunctions& mpi, int rank, double limit)
      : mpi_(mpi), rank_(rank), limit_(limit), thread_([this] { watch(); }) {}
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
      mpi_.abort(1);
    }
  }

  const MpiFunctions& mpi_;
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
  explicit MpiComm(const MpiFunctions& mpi) : mpi_(mpi) {
    mpi_.init(&rank_, &size_);
    dog_ = std::make_unique<Watchdog>(mpi_, rank_, hang_seconds());
  }
  ~MpiComm() override {
    dog_.reset();
    mpi_.finalize();
  }

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void abort_all() override { mpi_.abort(2); }

  void barrier() override {
    const Watchdog::Inside inside(*dog_, "barrier");
    mpi_.barrier();
  }

  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    std::vector<uint64_t> sizes(static_cast<size_t>(size_));
    {
      const Watchdog::Inside inside(*dog_, "all_gather");
      mpi_.all_gather(mine.size(), sizes.data());
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
    std::vector<MpiPart> out, in;
    for (const auto& part : send) out.push_back({const_cast<std::byte*>(part.data()), part.size()});  // only read
    for (const auto& part : receive) in.push_back({part.data(), part.size()});
    std::copy(send[me].begin(), send[me].end(), receive[me].begin());
    mpi_.exchange(out.data(), in.data(), rank_, size_);
  }

  void watched(const char* op, FunctionRef<void()> wait) override {
    const Watchdog::Inside inside(*dog_, op);
    wait();
  }

 private:
  const MpiFunctions& mpi_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<Watchdog> dog_;
};

// Ranks that mpirun started; 0 if it did not start this process, 1 too where it does not say how many there are.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* given = std::getenv(name); given != nullptr) return std::max(std::atoi(given), 1);
  }
  return std::getenv("PMIX_RANK") != nullptr ? 1 : 0;
}

// The module lies beside the program. It and MPI stay loaded until the program ends.
const MpiFunctions* load_mpi(std::string& why) {
  void* library = ::dlopen((program_path().parent_path() / kMpiModule).c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* functions = library == nullptr ? nullptr : ::dlsym(library, kMpiSymbol);
  if (functions == nullptr) why = ::dlerror();
  return static_cast<const MpiFunctions*>(functions);
}

}  // namespace

Comm& world_comm() {
  // Without mpirun there are no other ranks: MPI is neither loaded nor initialised.
  const int ranks = launched_ranks();
  if (ranks == 0) return self_comm();
  std::string why;
  static const MpiFunctions* const mpi = load_mpi(why);
  QKV_CHECK(mpi != nullptr || ranks == 1, "mpirun started ", ranks, " ranks but MPI cannot be used: ", why,
            Hint("where libopenmpi-dev is installed, the build makes ", kMpiModule, " beside the program"));
  if (mpi == nullptr) return self_comm();
  static MpiComm comm(*mpi);
  return comm;
}

}  // namespace qkv

// The inside of qkv::Model (include/qkv/model.h): what the commands of the program reach through it.
//
// Passes of one model come one after the other. A Turn is the right to run some; texts that are written at the same time
// share a Scheduler, which whichever of their threads has the turn steps for all.
#pragma once

#include <qkv/model.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "infer/text_run.h"
#include "open/open_model.h"

namespace qkv::v1 {

struct Model::Impl : std::enable_shared_from_this<Model::Impl> {
  Impl(std::string path, const OpenOptions& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // While it lives no other thread runs a pass. A BusyError if this very thread has one already, a ClosedError after
  // close().
  class Turn {
   public:
    explicit Turn(Impl& of);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();
    const OpenModel& model() const { return *of_.open_; }

   private:
    Impl& of_;
  };

  // Whatever needs no pass; a ClosedError after close(). It lives on while what is returned does.
  std::shared_ptr<const OpenModel> open() const;
  // The same for passes that look: in f32 unless the model is large or a precision was asked for.
  std::shared_ptr<const OpenModel> looking() const;
  const OpenOptions& options() const { return options_; }
  std::optional<DType> cache() const;  // none: what the model computes in

  // From any thread; the Scheduler is made with the first one.
  Scheduler::Ticket submit(TextRequest request, bool as_text);
  void cancel(Scheduler::Ticket ticket);
  // Until `done`, which is asked before each pass, or one pass was run here or by another thread.
  void step_unless(FunctionRef<bool()> done);
  // Texts end with the pass that runs.
  void close();
  bool closed() const { return closed_; }

 private:
  void check_open() const;
  void check_not_within() const;  // a function that this thread's pass calls
  void begin(std::unique_lock<std::mutex>& lock);
  void end();
  Scheduler& scheduler();

  const OpenOptions options_;
  std::shared_ptr<const OpenModel> open_;
  mutable std::shared_ptr<const OpenModel> looking_;  // made when it is first asked for; open_ where that computes so
  struct Texts {
    Runner runner;
    Scheduler scheduler;
    Texts(const OpenModel& model, const RunOptions& room);
  };
  static std::unique_ptr<Texts> with_room(const OpenModel& model, const OpenOptions& options);
  std::unique_ptr<Texts> texts_;

  mutable std::mutex mutex_;  // guards what follows, and the making of the scheduler
  std::condition_variable changed_;
  bool running_ = false;
  std::thread::id runs_in_;
  int waiting_ = 0;  // for a turn: they go before texts
  std::atomic<bool> closed_ = false;
};

// The model that was opened, for commands that draw or measure more than the library offers. Passes need a Turn only where
// other threads use the model too.
const OpenModel& inside(const Model& model);
// The same for commands that look inside, as Model::look() and its like do (Impl::looking).
const OpenModel& looking_inside(const Model& model);

qkv::OpenOptions inner_options(const OpenOptions& options);

}  // namespace qkv::v1

namespace qkv {

namespace api = v1;

}  // namespace qkv

#include <qkv/model.h>

#include <algorithm>
#include <utility>

#include "api/inside.h"
#include "infer/text_run.h"
#include "model/describe/summary.h"
#include "open/builtin_models.h"
#include "open/room.h"

namespace qkv::v1 {
namespace {

constexpr int64_t kMostWaiting = int64_t{1} << 24;  // the caller has them in memory already

kernels::DeviceChoice inner(Device device) {
  return device == Device::cpu    ? kernels::DeviceChoice::cpu
         : device == Device::cuda ? kernels::DeviceChoice::cuda
                                  : kernels::DeviceChoice::automatic;
}

std::optional<DType> inner(CacheType type) {
  switch (type) {
    case CacheType::f32:
      return DType::f32;
    case CacheType::bf16:
      return DType::bf16;
    case CacheType::i8:
      return DType::i8;
    case CacheType::automatic:
      break;
  }
  return std::nullopt;
}

}  // namespace

qkv::OpenOptions inner_options(const OpenOptions& options) {
  QKV_CHECK(options.texts >= 1 && options.context >= 0, "texts is ", options.texts, " and context ", options.context,
            Hint("a model writes at least one text, of as many tokens as it was made for (context = 0) or fewer"));
  qkv::OpenOptions open{.threads = options.threads,
                        .blocks = options.decoded ? BlockWeights::decoded : BlockWeights::kept,
                        .device = inner(options.device)};
  if (options.precision == Precision::f32) open.precision = qkv::Precision::f32();
  if (options.precision == Precision::bf16) open.precision = qkv::Precision::bf16();
  open.context = options.context > 0 ? options.context : kUsualContext;
  open.texts = options.texts;
  return open;
}

Model::Impl::Texts::Texts(const OpenModel& model, const RunOptions& room)
    : runner(model.runner(room)), scheduler(runner, {.most_waiting = kMostWaiting}) {}

// Room for as many texts as asked for; for fewer where they do not fit into memory.
std::unique_ptr<Model::Impl::Texts> Model::Impl::with_room(const OpenModel& model, const OpenOptions& options) {
  for (int64_t texts = std::max<int64_t>(options.texts, 1);; texts /= 2) {
    try {
      return std::make_unique<Texts>(
          model, room_for_texts(model, {.texts = texts, .context = options.context, .dtype = inner(options.cache)}));
    } catch (const Error&) {
      if (texts == 1) throw;
    }
  }
}

Model::Impl::Impl(std::string path, const OpenOptions& options)
    : options_(options), open_(std::make_shared<const OpenModel>(std::move(path), inner_options(options))) {}

std::optional<DType> Model::Impl::cache() const {
  return inner(options_.cache);
}

void Model::Impl::check_open() const {
  if (closed_) {
    throw ClosedError(Error::Kind::input, "the model was closed", "open it again; what was closed stays closed",
                      QKV_HERE);
  }
}

void Model::Impl::check_not_within() const {
  if (running_ && runs_in_ == std::this_thread::get_id()) {
    throw BusyError(Error::Kind::input, "the model was asked for a pass from within one of its own passes",
                    "keep what the function sees, and ask when read() has returned", QKV_HERE);
  }
}

void Model::Impl::begin(std::unique_lock<std::mutex>& lock) {
  check_not_within();
  ++waiting_;
  changed_.wait(lock, [&] { return !running_; });
  --waiting_;
  check_open();
  running_ = true;
  runs_in_ = std::this_thread::get_id();
}

void Model::Impl::end() {
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  changed_.notify_all();
}

Model::Impl::Turn::Turn(Impl& of) : of_(of) {
  std::unique_lock lock(of.mutex_);
  of.begin(lock);
}

Model::Impl::Turn::~Turn() {
  of_.end();
}

std::shared_ptr<const OpenModel> Model::Impl::open() const {
  const std::lock_guard lock(mutex_);
  check_open();
  return open_;
}

std::shared_ptr<const OpenModel> Model::Impl::looking() const {
  const std::lock_guard lock(mutex_);
  check_open();
  if (!looking_) {
    looking_ = open_->looking();
    if (!looking_) looking_ = open_;
  }
  return looking_;
}

Scheduler& Model::Impl::scheduler() {
  if (!texts_) texts_ = with_room(*open_, options_);
  return texts_->scheduler;
}

Scheduler::Ticket Model::Impl::submit(TextRequest request, bool as_text) {
  std::unique_lock lock(mutex_);
  check_not_within();
  if (!texts_)
    changed_.wait(lock, [&] { return !running_; });  // caches are not planned while a pass changes the weights
  check_open();
  if (!as_text) return submit_ids(scheduler(), std::move(request));
  return submit_text(scheduler(), open_->tokenizer(), std::move(request));
}

void Model::Impl::cancel(Scheduler::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (texts_) texts_->scheduler.cancel(ticket);
}

void Model::Impl::step_unless(FunctionRef<bool()> done) {
  std::unique_lock lock(mutex_);
  check_not_within();
  if (done()) return;
  check_open();
  if (running_ || waiting_ > 0) {
    changed_.wait(lock);
    return;
  }
  running_ = true;
  runs_in_ = std::this_thread::get_id();
  Scheduler& texts = scheduler();
  lock.unlock();
  struct End {
    Impl& of;
    ~End() { of.end(); }
  } const end{*this};
  texts.step();
}

void Model::Impl::close() {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  begin(lock);
  closed_ = true;
  texts_.reset();
  looking_.reset();
  open_.reset();
  running_ = false;
  lock.unlock();
  changed_.notify_all();
}

Model::Model(const std::string& path_or_name, const OpenOptions& options) {
  QKV_CHECK(!path_or_name.empty(), "no model was named",
            Hint("give a folder, a GGUF file, or the name of a built-in model"));
  impl_ = std::make_shared<Impl>(find_model(path_or_name), options);
}

Model::Impl& Model::impl() const {
  if (!impl_) {
    throw ClosedError(Error::Kind::input, "this model was moved to another variable", "use that one", QKV_HERE);
  }
  return *impl_;
}

ModelInfo Model::info() const {
  const auto open = impl().open();
  const ModelSpec& spec = open->spec();
  const auto& layers = spec.main_stack().layers;
  return {.path = open->path(),
          .family = spec.family,
          .kind = qkv::name_of(spec.kind),
          .parameters = summarise(spec).parameters,
          .layers = std::ssize(layers),
          .width = spec.width,
          .heads = layers.empty() ? 0 : layers.front().attention.heads,
          .vocabulary = spec.vocabulary,
          .context = spec.context,
          .device = &open->engine().device() == &cpu_device() ? "cpu" : "cuda",
          .precision = name_of(open->precision().compute),
          .looking = name_of(impl().looking()->precision().compute),
          .threads = open->engine().threads()};
}

bool Model::has_tokenizer() const {
  return impl().open()->has_tokenizer();
}

void Model::close() {
  if (impl_) impl_->close();
}

bool Model::closed() const {
  return !impl_ || impl_->closed();
}

const OpenModel& inside(const Model& model) {
  return *model.impl().open();
}

const OpenModel& looking_inside(const Model& model) {
  return *model.impl().looking();
}

std::vector<BuiltinModel> builtin_models() {
  std::vector<BuiltinModel> all;
  for (const qkv::BuiltinModel& one : qkv::builtin_models()) {
    all.push_back({std::string(one.name), std::string(one.about), std::string(one.languages)});
  }
  return all;
}

#define QKV_TEXT_OF(x) #x
#define QKV_DOTTED(a, b, c) QKV_TEXT_OF(a) "." QKV_TEXT_OF(b) "." QKV_TEXT_OF(c)
const char* version() {
  return QKV_DOTTED(QKV_VERSION_MAJOR, QKV_VERSION_MINOR, QKV_VERSION_PATCH);
}

}  // namespace qkv::v1

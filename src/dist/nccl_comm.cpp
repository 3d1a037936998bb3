// Comm between GPUs. NCCL is loaded at run time, so the program needs neither its headers nor the library to be built or
// to start; the few functions it takes are declared here as NCCL documents them.
#include <dlfcn.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "dist/comm.h"

namespace qkv {
namespace {

struct NcclId {
  std::array<char, 128> bytes;
};
using NcclResult = int;  // 0: success
using NcclHandle = void*;
constexpr int kNcclBytes = 0;  // the data type of bytes

struct Nccl {
  NcclResult (*get_unique_id)(NcclId*) = nullptr;
  NcclResult (*comm_init_rank)(NcclHandle*, int ranks, NcclId, int rank) = nullptr;
  NcclResult (*comm_abort)(NcclHandle) = nullptr;
  NcclResult (*send)(const void*, size_t, int type, int peer, NcclHandle, void* stream) = nullptr;
  NcclResult (*receive)(void*, size_t, int type, int peer, NcclHandle, void* stream) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  const char* (*error_string)(NcclResult) = nullptr;

  // Empty where it was loaded.
  std::string load() {
    void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "libnccl.so.2 was not found";
    const auto take = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    const bool all = take(get_unique_id, "ncclGetUniqueId") && take(comm_init_rank, "ncclCommInitRank") &&
                     take(comm_abort, "ncclCommAbort") && take(send, "ncclSend") && take(receive, "ncclRecv") &&
                     take(group_start, "ncclGroupStart") && take(group_end, "ncclGroupEnd") &&
                     take(error_string, "ncclGetErrorString");
    return all ? "" : "libnccl.so.2 is too old: it cannot send and receive";
  }
};

class NcclComm final : public Comm {
 public:
  NcclComm(Comm& ranks, Device& device, const Nccl& nccl, NcclHandle handle)
      : ranks_(ranks), device_(device), nccl_(nccl), handle_(handle) {}
  ~NcclComm() override { nccl_.comm_abort(handle_); }

  const char* name() const override { return "nccl"; }
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void abort_all() override { ranks_.abort_all(); }
  void barrier() override { ranks_.barrier(); }
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return ranks_.all_gather(mine);
  }
  void exchange(std::span<const std::span<const std::byte>> send,
                std::span<const std::span<std::byte>> receive) override {
    ranks_.exchange(send, receive);
  }

  // What this GPU has still to do comes first, for that is no wait for others. The exchange is waited for, or nobody
  // would notice a rank that does not come.
  void exchange_on(Device& device, std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> receive) override {
    QKV_ASSERT(&device == &device_, "an exchange on ", device.name(), " through NCCL of ", device_.name());
    device.finish();
    watched("exchange between GPUs", [&] {
      check(queue(send, receive));
      device.finish();
    });
  }
  void watched(const char* op, FunctionRef<void()> wait) override { ranks_.watched(op, wait); }

 private:
  // The first error. The group is closed whatever happened: in an open one later calls would only be kept.
  NcclResult queue(std::span<const std::span<const std::byte>> send,
                   std::span<const std::span<std::byte>> receive) const {
    NcclResult code = nccl_.group_start();
    for (size_t r = 0; r < send.size() && code == 0; ++r) {
      const int peer = static_cast<int>(r);
      if (!receive[r].empty()) {
        code = nccl_.receive(receive[r].data(), receive[r].size(), kNcclBytes, peer, handle_, device_.stream());
      }
      if (code == 0 && !send[r].empty()) {
        code = nccl_.send(send[r].data(), send[r].size(), kNcclBytes, peer, handle_, device_.stream());
      }
    }
    const NcclResult ended = nccl_.group_end();
    return code != 0 ? code : ended;
  }
  void check(NcclResult code) const {
    QKV_CHECK(code == 0, "NCCL failed: ", nccl_.error_string(code),
              Hint("NCCL_DEBUG=INFO says more; the last checkpoint is intact"));
  }

  Comm& ranks_;
  Device& device_;
  Nccl nccl_;
  NcclHandle handle_;
};

}  // namespace

std::unique_ptr<Comm> nccl_comm(Comm& ranks, Device& device, std::string& why) {
  Nccl nccl;
  why = device.stream() == nullptr ? "the tensors are not on a GPU" : nccl.load();
  // All ranks or none; the first one's id is everyone's.
  struct Hello {
    int usable = 0;
    NcclId id{};
  };
  Hello mine{.usable = why.empty() ? 1 : 0};
  if (why.empty() && ranks.rank() == 0 && nccl.get_unique_id(&mine.id) != 0) mine.usable = 0;
  Hello first{};
  int usable = 0;
  const auto all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)));
  for (size_t r = all.size(); r-- > 0;) {
    std::memcpy(&first, all[r].data(), sizeof(first));
    usable += first.usable;
  }
  if (usable != ranks.size()) {
    if (why.empty()) why = "not every rank can use NCCL";
    return nullptr;
  }
  NcclHandle handle = nullptr;
  NcclResult code = 0;
  ranks.watched("connecting GPUs", [&] { code = nccl.comm_init_rank(&handle, ranks.size(), first.id, ranks.rank()); });
  QKV_CHECK(code == 0, "NCCL could not connect ", ranks.size(), " ranks: ", nccl.error_string(code),
            Hint("every rank needs a GPU of its own"));
  return std::make_unique<NcclComm>(ranks, device, nccl, handle);
}

}  // namespace qkv

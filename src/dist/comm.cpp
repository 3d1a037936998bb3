#include "dist/comm.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {
namespace {

class SelfComm final : public Comm {
 public:
  const char* name() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void abort_all() override {}
  void barrier() override {}
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> mine) override {
    return {{mine.begin(), mine.end()}};
  }
  void exchange(std::span<const std::span<const std::byte>> send,
                std::span<const std::span<std::byte>> receive) override {
    QKV_ASSERT(send.size() == 1 && receive.size() == 1 && send[0].size() == receive[0].size(),
               "an exchange of one process with itself");
    std::copy(send[0].begin(), send[0].end(), receive[0].begin());
  }
};

}  // namespace

void Comm::exchange_on(Device& device, std::span<const std::span<const std::byte>> send,
                       std::span<const std::span<std::byte>> receive) {
  if (&device == &cpu_device()) return exchange(send, receive);
  std::vector<std::vector<std::byte>> out, in;
  for (const auto& part : send) {
    device.download(out.emplace_back(part.size()).data(), part.data(), static_cast<int64_t>(part.size()));
  }
  for (const auto& part : receive) in.emplace_back(part.size());
  exchange(std::vector<std::span<const std::byte>>(out.begin(), out.end()),
           std::vector<std::span<std::byte>>(in.begin(), in.end()));
  for (size_t r = 0; r < in.size(); ++r) {
    device.upload(receive[r].data(), in[r].data(), static_cast<int64_t>(in[r].size()));
  }
}

void Comm::watched(const char*, FunctionRef<void()> wait) {
  wait();
}

Comm& self_comm() {
  static SelfComm comm;
  return comm;
}

}  // namespace qkv

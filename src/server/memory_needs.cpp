#include "server/memory_needs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"

namespace qkv::server {
namespace {

void check_device(const Device& device, const std::vector<ModelNeed>& needs) {
  int64_t need = 0;
  std::string models;
  for (const ModelNeed& each : needs) {
    if (each.device != &device) continue;
    need += each.bytes;
    models += fmt::format("{}{} {}", models.empty() ? "" : ", ", each.model, in_gibibytes(each.bytes));
  }
  const int64_t have = device.free_bytes();
  const bool host = &device == &cpu_device();
  QKV_CHECK(
      need <= have, "serving needs ", in_gibibytes(need), " (", models, ") but ", in_gibibytes(have), " are free",
      host ? "" : " on ", host ? "" : device.name(),
      Hint("use fewer --slots, a shorter --context, --cache i8, or quantised models", host ? "" : ", or --device cpu"));
}

}  // namespace

void check_needs(const std::vector<ModelNeed>& needs) {
  std::vector<const Device*> seen;
  for (const ModelNeed& need : needs) {
    if (std::find(seen.begin(), seen.end(), need.device) != seen.end()) continue;
    seen.push_back(need.device);
    check_device(*need.device, needs);
  }
}

}  // namespace qkv::server

#include "io/stored_tensor.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"

namespace qkv {

OutgoingTensor outgoing(const StoredTensor& entry) {
  return {entry.name, entry.dtype, entry.shape, [bytes = entry.bytes](ByteSink sink) { sink(bytes); }};
}

void write_tensor(AtomicFile& out, const OutgoingTensor& tensor, uint64_t bytes) {
  uint64_t given = 0;
  tensor.give([&](std::span<const std::byte> piece) {
    QKV_ASSERT(piece.size() <= bytes - given, "tensor ", printable(tensor.name), " needs ", bytes,
               " bytes but was given ", given, " and then ", piece.size(), " more");
    given += piece.size();
    out.write(piece);
  });
  QKV_ASSERT(given == bytes, "tensor ", printable(tensor.name), " needs ", bytes, " bytes but was given ", given);
}

const StoredTensor* find_by_name(std::span<const StoredTensor> sorted, std::string_view name) {
  const auto found =
      std::ranges::lower_bound(sorted, name, {}, [](const StoredTensor& t) -> std::string_view { return t.name; });
  return found != sorted.end() && found->name == name ? &*found : nullptr;
}

void fail_no_such_tensor(const std::string& container, std::string_view wanted, std::span<const StoredTensor> entries) {
  constexpr int kNamesShown = 3;
  std::vector<std::string_view> known;
  for (const StoredTensor& entry : entries) known.push_back(entry.name);
  std::string near;
  for (int i = 0; i < kNamesShown; ++i) {
    const std::string next = nearest_key(wanted, known);
    if (next.empty()) break;
    near += (near.empty() ? "did you mean " : " or ") + printable(next);
    std::erase(known, next);
  }
  if (near.empty() && !entries.empty()) near = "its first tensor is " + printable(entries.front().name);
  QKV_FAIL(container, ": has no tensor ", printable(wanted), " among its ", entries.size(),
           Hint(near.empty() ? "the file holds no tensors at all" : near));
}

}  // namespace qkv

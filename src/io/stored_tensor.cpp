#include "io/stored_tensor.h"

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

void fail_no_such_tensor(const std::string& container, std::string_view wanted, std::vector<std::string_view> known) {
  constexpr int kNamesShown = 3;
  const size_t count = known.size();
  const std::string first = known.empty() ? "" : printable(known.front());
  std::string near;
  for (int i = 0; i < kNamesShown; ++i) {
    const std::string next = nearest_key(wanted, known);
    if (next.empty()) break;
    near += (near.empty() ? "did you mean " : " or ") + printable(next);
    std::erase(known, next);
  }
  if (near.empty() && count > 0) near = "its first tensor is " + first;
  QKV_FAIL(container, ": has no tensor ", printable(wanted), " among its ", count,
           Hint(near.empty() ? "the file holds no tensors at all" : near));
}

}  // namespace qkv

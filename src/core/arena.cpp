#include "core/arena.h"

#include <algorithm>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace qkv {
namespace {

constexpr int64_t kSmallestBlock = int64_t{1} << 20;

// The first address of a planning arena: never dereferenced, but offsets are computed from it.
std::byte* plan_base() {
  return reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
}

int64_t padded(int64_t bytes) {
  QKV_CHECK(bytes <= INT64_MAX / 2, "arena: ", bytes, " bytes cannot be had", Hint("use a smaller batch or model"));
  return (bytes + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
}

}  // namespace

Arena::Arena(Device& device, int64_t reserve, Mode mode) : device_(&device), mode_(mode) {
  if (mode == Mode::real && reserve > 0) add_block(padded(reserve));
}

Arena::~Arena() {
  drop_blocks(0);
}

void Arena::drop_blocks(size_t from) {
  for (size_t b = from; b < blocks_.size(); ++b) {
    ASAN_UNPOISON_MEMORY_REGION(blocks_[b].data(), static_cast<size_t>(blocks_[b].bytes()));
  }
  blocks_.resize(std::min(from, blocks_.size()));
}

void Arena::add_block(int64_t bytes) {
  blocks_.emplace_back(*device_, Format(DType::i8), bytes);
  ASAN_POISON_MEMORY_REGION(blocks_.back().data(), static_cast<size_t>(bytes));
}

Tensor Arena::take(Format format, const Shape& shape) {
  const int64_t bytes = format.bytes_for(shape);
  return Tensor(*device_, take_bytes(bytes), format, shape);
}

std::byte* Arena::take_bytes(int64_t bytes) {
  const int64_t need = padded(std::max<int64_t>(bytes, 1));
  if (mode_ == Mode::plan) {
    std::byte* at = plan_base() + used_;
    used_ += need;
    peak_ = std::max(peak_, used_);
    return at;
  }
  if (blocks_.empty()) add_block(std::max(need, kSmallestBlock));
  while (used_ + need > blocks_[current_].bytes()) {
    if (current_ + 1 == blocks_.size()) add_block(std::max({need, kSmallestBlock, padded(reserved() / 4)}));
    below_ += used_;
    used_ = 0;
    ++current_;
  }
  std::byte* at = blocks_[current_].data() + used_;
  used_ += need;
  peak_ = std::max(peak_, used());
  ASAN_UNPOISON_MEMORY_REGION(at, static_cast<size_t>(bytes));
  return at;
}

int64_t Arena::missing(int64_t bytes) const {
  for (size_t b = current_; b < blocks_.size(); ++b) {
    if (blocks_[b].bytes() - (b == current_ ? used_ : 0) >= bytes) return 0;
  }
  return padded(bytes);
}

void Arena::reserve(int64_t bytes) {
  if (mode_ == Mode::plan || missing(bytes) == 0) return;
  drop_blocks(used() == 0 ? 0 : current_ + 1);
  add_block(padded(bytes));
}

void Arena::rewind(Mark mark) {
  QKV_ASSERT(mark.block < current_ || (mark.block == current_ && mark.used <= used_),
             "arena: rewind to a mark that lies ahead (block ", mark.block, " byte ", mark.used, ", now block ",
             current_, " byte ", used_, ")");
  if (mode_ == Mode::real && !blocks_.empty()) {
    for (size_t b = mark.block; b <= current_; ++b) {
      const int64_t from = b == mark.block ? mark.used : 0;
      ASAN_POISON_MEMORY_REGION(blocks_[b].data() + from, static_cast<size_t>(blocks_[b].bytes() - from));
    }
  }
  current_ = mark.block;
  below_ = mark.below;
  used_ = mark.used;
}

int64_t Arena::reserved() const {
  int64_t bytes = 0;
  for (const Storage& block : blocks_) bytes += block.bytes();
  return bytes;
}

}  // namespace qkv

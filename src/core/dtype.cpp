#include "core/dtype.h"

#include <tuple>

#include "base/error.h"
#include "core/panels.h"
#include "core/shape.h"

namespace qkv {
namespace {

constexpr const char* kTooLarge = "no memory holds so many bytes: one of the sizes is wrong";

}  // namespace

const char* name_of(DType t) {
  switch (t) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i8:
      return "i8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, DType t) {
  return out << name_of(t);
}

std::ostream& operator<<(std::ostream& out, Format f) {
  out << (f.plain() ? name_of(f.dtype) : name_of(f.block));
  if (f.group > 0) out << '/' << f.group;
  return out;
}

Format::Format(Block b, int32_t g) : block(b), group(g) {
  QKV_CHECK(panels(), "format ", name_of(b), " has blocks of its own and takes no group of ", g,
            Hint("only q8 and q4 have groups"));
  QKV_CHECK(g == 0 || g == 32 || g == 64 || g == 128 || g == 256, "format ", name_of(b), " cannot have groups of ", g,
            Hint("use 32, 64, 128, 256, or 0 for one scale a row"));
}

int64_t Format::block_elements() const {
  return elements_of(block);
}

int64_t Format::block_bytes() const {
  return plain() ? size_of(dtype) : bytes_of(block);
}

int64_t Format::bytes_for(const Shape& shape) const {
  if (!panels()) {
    if (shape.rank() > 0 && shape.count() > 0) std::ignore = bytes_for(shape[-1]);  // a row is whole blocks
    return bytes_for(shape.count());
  }
  QKV_CHECK(shape.rank() >= 2, "format ", *this, " holds matrices but the shape is ", shape,
            Hint("use a plain dtype for vectors"));
  const PanelLayout layout(*this, shape[-1]);
  int64_t panels = (shape[-2] + kPanelRows - 1) / kPanelRows, bytes = 0;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis) panels *= shape[axis];  // at most the count of elements
  QKV_CHECK(!__builtin_mul_overflow(panels, layout.bytes(), &bytes), "a tensor ", shape, " of ", *this,
            " does not fit in 64-bit byte counts", Hint(kTooLarge));
  return bytes;
}

int64_t Format::bytes_for(int64_t elements) const {
  QKV_CHECK(!panels(), "format ", *this, " holds matrices, not one row of ", elements, " elements",
            Hint("use a plain dtype for vectors"));
  QKV_CHECK(elements % block_elements() == 0, "format ", *this, " holds blocks of ", block_elements(),
            " elements but the row has ", elements,
            Hint("use a width that is a multiple of the block, or a plain dtype"));
  int64_t bytes = 0;
  QKV_CHECK(!__builtin_mul_overflow(elements / block_elements(), block_bytes(), &bytes), "a tensor of ", elements,
            " elements of ", *this, " does not fit in 64-bit byte counts", Hint(kTooLarge));
  return bytes;
}

}  // namespace qkv

#include "core/dtype.h"

#include "base/error.h"

namespace qkv {

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
  return out << (f.plain() ? name_of(f.dtype) : name_of(f.block));
}

int64_t Format::block_elements() const {
  return elements_of(block);
}

int64_t Format::block_bytes() const {
  return plain() ? size_of(dtype) : bytes_of(block);
}

int64_t Format::bytes_for(int64_t elements) const {
  QKV_CHECK(elements % block_elements() == 0, "format ", *this, " holds blocks of ", block_elements(),
            " elements but the row has ", elements,
            Hint("use a width that is a multiple of the block, or a plain dtype"));
  int64_t bytes = 0;
  QKV_CHECK(!__builtin_mul_overflow(elements / block_elements(), block_bytes(), &bytes), "a tensor of ", elements,
            " elements of ", *this, " does not fit in 64-bit byte counts");
  return bytes;
}

}  // namespace qkv

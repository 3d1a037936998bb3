#include "core/panels.h"

#include "base/error.h"

namespace qkv {

PanelLayout::PanelLayout(Format format, int64_t width)
    : group_(format.group > 0 ? format.group : width),
      groups_(group_ > 0 ? width / group_ : 0),
      nibbles_(format.block == Block::q4) {
  QKV_CHECK(width > 0 && width % 32 == 0 && width % group_ == 0 && width <= kWidest, "format ", format,
            " cannot hold rows of ", width, " elements",
            Hint("rows must be whole groups, a multiple of 32 and at most ", kWidest));
}

}  // namespace qkv

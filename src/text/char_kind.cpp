#include "text/char_kind.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/checked.h"

namespace qkv {
namespace {

uint8_t kind_of(uint32_t code) {
  if (code == '\r' || code == '\n') return kSpace | kLineEnd;
  // White_Space beyond the separators.
  if ((code >= 9 && code <= 13) || code == 0x85) return kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kOtherLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace;
    default:
      return 0;
  }
}

}  // namespace

CharKinds::CharKinds() {
  for (uint32_t high = 0; high < block_of_.size(); ++high) {
    Block block;
    for (uint32_t low = 0; low < block.size(); ++low) block[low] = kind_of(high << 8 | low);
    const auto same = std::find(blocks_.begin(), blocks_.end(), block);
    block_of_[high] = narrow<uint8_t>(same - blocks_.begin(), "number of a block of characters");
    if (same == blocks_.end()) blocks_.push_back(block);
  }
  std::copy_n(blocks_[block_of_[0]].begin(), ascii_.size(), ascii_.begin());
}

const CharKinds& CharKinds::table() {
  static const CharKinds kinds;
  return kinds;
}

}  // namespace qkv

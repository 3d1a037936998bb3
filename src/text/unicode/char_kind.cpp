#include "text/unicode/char_kind.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/checked.h"

namespace qkv {
namespace {

struct Range {
  uint32_t first, last;
  uint8_t kind;
};

// Assigned in Unicode 15.1 and 16.0: known to Hugging Face's patterns, maybe not to the installed utf8proc.
constexpr Range kNewer[] = {
    {0x0897, 0x0897, kMark},          {0x1B4E, 0x1B4F, kSymbol},        {0x1B7F, 0x1B7F, kSymbol},
    {0x1C89, 0x1C89, kUpper},         {0x1C8A, 0x1C8A, kLower},         {0x2427, 0x2429, kSymbol},
    {0x2FFC, 0x2FFF, kSymbol},        {0x31E4, 0x31E5, kSymbol},        {0x31EF, 0x31EF, kSymbol},
    {0xA7CB, 0xA7CC, kUpper},         {0xA7CD, 0xA7CD, kLower},         {0xA7DA, 0xA7DA, kUpper},
    {0xA7DB, 0xA7DB, kLower},         {0xA7DC, 0xA7DC, kUpper},         {0x105C0, 0x105F3, kOtherLetter},
    {0x10D40, 0x10D49, kNumber},      {0x10D4A, 0x10D4F, kOtherLetter}, {0x10D50, 0x10D65, kUpper},
    {0x10D69, 0x10D6D, kMark},        {0x10D6E, 0x10D6E, kSymbol},      {0x10D6F, 0x10D6F, kOtherLetter},
    {0x10D70, 0x10D85, kLower},       {0x10D8E, 0x10D8F, kSymbol},      {0x10EC2, 0x10EC4, kOtherLetter},
    {0x10EFC, 0x10EFC, kMark},        {0x11380, 0x11389, kOtherLetter}, {0x1138B, 0x1138B, kOtherLetter},
    {0x1138E, 0x1138E, kOtherLetter}, {0x11390, 0x113B5, kOtherLetter}, {0x113B7, 0x113B7, kOtherLetter},
    {0x113B8, 0x113C0, kMark},        {0x113C2, 0x113C2, kMark},        {0x113C5, 0x113C5, kMark},
    {0x113C7, 0x113CA, kMark},        {0x113CC, 0x113D0, kMark},        {0x113D1, 0x113D1, kOtherLetter},
    {0x113D2, 0x113D2, kMark},        {0x113D3, 0x113D3, kOtherLetter}, {0x113D4, 0x113D5, kSymbol},
    {0x113D7, 0x113D8, kSymbol},      {0x113E1, 0x113E2, kMark},        {0x116D0, 0x116E3, kNumber},
    {0x11BC0, 0x11BE0, kOtherLetter}, {0x11BE1, 0x11BE1, kSymbol},      {0x11BF0, 0x11BF9, kNumber},
    {0x13460, 0x143FA, kOtherLetter}, {0x16100, 0x1611D, kOtherLetter}, {0x1611E, 0x1612F, kMark},
    {0x16130, 0x16139, kNumber},      {0x16D40, 0x16D6C, kOtherLetter}, {0x16D6D, 0x16D6F, kSymbol},
    {0x16D70, 0x16D79, kNumber},      {0x18CFF, 0x18CFF, kOtherLetter}, {0x1CC00, 0x1CCEF, kSymbol},
    {0x1CCF0, 0x1CCF9, kNumber},      {0x1CD00, 0x1CEB3, kSymbol},      {0x1E5D0, 0x1E5ED, kOtherLetter},
    {0x1E5EE, 0x1E5EF, kMark},        {0x1E5F0, 0x1E5F0, kOtherLetter}, {0x1E5F1, 0x1E5FA, kNumber},
    {0x1E5FF, 0x1E5FF, kSymbol},      {0x1F8B2, 0x1F8BB, kSymbol},      {0x1F8C0, 0x1F8C1, kSymbol},
    {0x1FA89, 0x1FA89, kSymbol},      {0x1FA8F, 0x1FA8F, kSymbol},      {0x1FABE, 0x1FABE, kSymbol},
    {0x1FAC6, 0x1FAC6, kSymbol},      {0x1FADC, 0x1FADC, kSymbol},      {0x1FADF, 0x1FADF, kSymbol},
    {0x1FAE9, 0x1FAE9, kSymbol},      {0x1FBCB, 0x1FBEF, kSymbol},      {0x2EBF0, 0x2EE5D, kOtherLetter}};

uint8_t kind_of(uint32_t code) {
  if (code == '\r' || code == '\n') return kSpace | kLineEnd;
  // White_Space outside the separator categories.
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
    case UTF8PROC_CATEGORY_CN:
      for (const Range& range : kNewer) {
        if (code >= range.first && code <= range.last) return range.kind;
      }
      return 0;
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

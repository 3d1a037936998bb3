#include "base/display_width.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace qkv {
namespace {

struct Range {
  char32_t first, last;
};

// UAX 11: East Asian Wide and Fullwidth characters, and emoji.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x23F0, 0x23F0},
    {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},
    {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27B0},   {0x27BF, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},
    {0x2E80, 0x3029},   {0x302E, 0x303E},   {0x3041, 0x3098},   {0x309B, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE1F},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x16FE3}, {0x16FF0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF},
    {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C},
    {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4},
    {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E},
    {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F},
    {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2}, {0x1F6D5, 0x1F6DF}, {0x1F6EB, 0x1F6EC},
    {0x1F6F4, 0x1F6FF}, {0x1F7E0, 0x1F7F0}, {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF},
    {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Combining marks. Those of the Arabic, Indic and Thai scripts are left out: such text counts as wider than it is, so
// lines are cut too early, never too late.
constexpr Range kZero[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x1160, 0x11FF}, {0x1AB0, 0x1ACE},
                           {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F},
                           {0x20D0, 0x20F0}, {0x302A, 0x302D}, {0x3099, 0x309A}, {0xD7B0, 0xD7FB},
                           {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0001, 0xE01EF}};

bool contains(const Range* first, const Range* last, char32_t c) {
  const Range* after = std::upper_bound(first, last, c, [](char32_t value, const Range& r) { return value < r.first; });
  return after != first && c <= after[-1].last;
}

int width_of(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return 0;
  if (c < 0x300) return 1;
  if (contains(std::begin(kZero), std::end(kZero), c)) return 0;
  return contains(std::begin(kWide), std::end(kWide), c) ? 2 : 1;
}

struct Decoded {
  char32_t c;
  size_t bytes;
};

// The first character; a byte that is not UTF-8 counts alone, as the replacement character a terminal shows for it.
Decoded decode(std::string_view text) {
  constexpr Decoded kBroken{0xFFFD, 1};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return kBroken;
  char32_t c = lead & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return kBroken;
    c = (c << 6) | (next & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[bytes] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return kBroken;
  return {c, bytes};
}

}  // namespace

int display_width(std::string_view utf8) {
  int cells = 0;
  while (!utf8.empty()) {
    const Decoded first = decode(utf8);
    cells += width_of(first.c);
    utf8.remove_prefix(first.bytes);
  }
  return cells;
}

std::string_view fit_width(std::string_view utf8, int cells) {
  size_t end = 0;
  while (end < utf8.size()) {
    const Decoded next = decode(utf8.substr(end));
    cells -= width_of(next.c);
    if (cells < 0) break;
    end += next.bytes;
  }
  return utf8.substr(0, end);
}

}  // namespace qkv

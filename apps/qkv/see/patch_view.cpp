#include "see/patch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/display_width.h"
#include "base/printable.h"
#include "common/drawing.h"
#include "inspect/report/look_report.h"
#include "inspect/report/numbers.h"

namespace qkv::app {
namespace {

constexpr int kNameCells = 6, kNumberCells = 6, kHeatCells = 2;

std::string patched_token(const ShownToken& token) {
  return token.text.empty() && token.continues ? "·" : printable(with_part_signs(token.text));
}

// The texts one above the other, numbered, with what differs in colour; as many to a line as fit.
std::string draw_both_texts(const PatchedTokens& tokens, int columns) {
  std::string out, numbers, clean, corrupt;
  int used = 0;
  const auto flush = [&] {
    if (used == 0) return;
    out += inked(Ink::dim, numbers) + "\n" + clean + "\n" + corrupt + "\n";
    numbers = clean = corrupt = "";
    used = 0;
  };
  const auto begin = [&] {
    numbers = "         ";
    clean = "clean    ";
    corrupt = "corrupt  ";
    used = 9;
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string a = patched_token(tokens.clean[i]), b = patched_token(tokens.corrupt[i]);
    const int cells = 1 + std::max({static_cast<int>(display_width(a)), static_cast<int>(display_width(b)),
                                    static_cast<int>(std::to_string(i).size())});
    if (used + cells > columns) flush();
    if (used == 0) begin();
    used += cells;
    numbers += in_cells(std::to_string(i), cells);
    clean += tokens.differ(i) ? inked(Ink::green, in_cells(a, cells)) : in_cells(a, cells);
    corrupt += tokens.differ(i) ? inked(Ink::red, in_cells(b, cells)) : in_cells(b, cells);
  }
  flush();
  return out;
}

std::string patch_cell(double r, int cells) {
  if (std::isnan(r)) return spaces(cells);
  const double share = std::clamp(r, 0.0, 1.0);
  return cells == kHeatCells ? heat(share, cells) : on_heat(share, fmt::format("{:>5.2f}", r), cells);
}

// Rows are layers, the last one on top as in the ladder of guesses; wide maps are drawn without numbers, or in parts.
std::string draw_patch_map(const PatchMap& map, int columns) {
  const int room = std::max(columns - kNameCells, kNumberCells);
  const int cells = map.columns * kNumberCells <= room ? kNumberCells : kHeatCells;
  const int64_t each = std::max(room / cells, 1);
  std::string out;
  for (int64_t first = 0; first < map.columns; first += each) {
    const int64_t end = std::min(first + each, map.columns);
    std::string above = spaces(kNameCells);
    for (int64_t c = first; c < end; ++c) {
      const bool named = cells == kNumberCells || c % 5 == 0;
      if (named)
        above +=
            in_cells_right(std::to_string(c), cells == kNumberCells ? cells - 1 : 2) + spaces(cells == kNumberCells);
      if (!named) above += spaces(cells);
    }
    out += inked(Ink::dim, above) + "\n";
    for (size_t row = map.rows.size(); row-- > 0;) {
      out += in_cells(map.rows[row], kNameCells);
      for (int64_t c = first; c < end; ++c) out += patch_cell(map.at(row, c), cells);
      out += '\n';
    }
  }
  return out;
}

// Most of all cells, best first.
std::string draw_best_patches(const PatchFindings& found) {
  struct Best {
    double r;
    std::string where;
  };
  std::vector<Best> all;
  for (const PatchMap& map : found.maps) {
    if (map.site == Site::resid_pre) continue;  // what every later site stands on
    for (size_t row = 0; row < map.rows.size(); ++row) {
      for (int64_t c = 0; c < map.columns; ++c) {
        if (std::isnan(map.at(row, c))) continue;
        const bool heads = map.across == PatchMap::Across::heads;
        const PatchedTokens& tokens = map.across == PatchMap::Across::source ? found.source : found.tokens;
        const std::string where = heads ? fmt::format("{}H{}, all positions", map.rows[row], c)
                                        : fmt::format("{} {} at {} {}", map.rows[row], name_of(map.site), c,
                                                      patched_token(tokens.clean[static_cast<size_t>(c)]));
        all.push_back({map.at(row, c), where});
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Best& a, const Best& b) { return std::abs(a.r) > std::abs(b.r); });
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 8); ++i) {
    out += fmt::format("  {:+.3f}  {}\n", all[i].r, all[i].where);
  }
  return out;
}

}  // namespace

std::string title_of(const PatchMap& map, bool several_stacks) {
  std::string title;
  switch (map.site) {
    case Site::resid_pre:
      title = "residual stream before a layer";
      break;
    case Site::attn_out:
      title = "attention's output";
      break;
    case Site::mlp_out:
      title = "feed-forward's output";
      break;
    default:
      title = map.across == PatchMap::Across::heads ? "single heads, all positions at once" : "heads by position";
  }
  if (!several_stacks) return title;
  const char* stack = map.stack == Stack::encoder ? "encoder"
                      : map.stack == Stack::cross ? "cross-attention"
                                                  : "decoder";
  return fmt::format("{}: {}", stack, title);
}

std::string draw_patches(const PatchFindings& found, int columns) {
  std::string out;
  if (found.source.size() > 0) out += draw_both_texts(found.source, columns) + "\n";
  out += draw_both_texts(found.tokens, columns);
  out += fmt::format("\nafter token {}: logit of {} less logit of {}: clean {:+.4f}, corrupt {:+.4f}\n", found.row,
                     inked(Ink::green, printable(with_part_signs(found.answer))),
                     inked(Ink::red, printable(with_part_signs(found.wrong))), found.clean, found.corrupt);
  out += wrapped("What comes back if one site has its value of the clean text: 0 as corrupt, 1 as clean.", columns);
  constexpr double kLittle = 0.1;
  if (std::abs(found.clean - found.corrupt) < kLittle) {
    out += wrapped(
        "The two texts hardly differ in this: shares of so little say little. Name other tokens with --answer "
        "and --wrong.",
        columns);
  }
  for (const PatchMap& map : found.maps) {
    const char* across = map.across == PatchMap::Across::heads    ? "head"
                         : map.across == PatchMap::Across::source ? "source token"
                                                                  : "token";
    out += "\n" + inked(Ink::bold, title_of(map, found.source.size() > 0)) +
           inked(Ink::dim, fmt::format(", layer by {}", across)) + "\n" + draw_patch_map(map, columns);
  }
  return out + "\n" + inked(Ink::bold, "strongest of what layers write") + "\n" + draw_best_patches(found);
}

}  // namespace qkv::app

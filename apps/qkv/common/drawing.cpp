#include "common/drawing.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/display_width.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "common/terminal.h"

namespace qkv::app {
namespace {

bool coloured() {
  static const bool may = may_colour(STDOUT_FILENO);
  return may;
}

struct Rgb {
  int r, g, b;
};

// Dark blue, violet, orange, light yellow: even steps of lightness, and told apart by the colour-blind.
Rgb heat_colour(double share) {
  static constexpr std::array<Rgb, 6> kStops{
      {{12, 8, 38}, {66, 15, 100}, {135, 36, 102}, {205, 66, 71}, {246, 128, 23}, {252, 228, 120}}};
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * (kStops.size() - 1);
  const auto low = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(low);
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + part * (b - a))); };
  const Rgb &a = kStops[low], &b = kStops[low + 1];
  return {mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b)};
}

std::string shown(std::string_view text) {
  std::string clean;
  for (const char c : escaped(text)) {
    switch (c) {
      case '\n':
        clean += "⏎";
        break;
      case '\t':
        clean += "⇥";
        break;
      default:
        clean += c;
    }
  }
  return clean;
}

std::string cut(const std::string& text, int cells) {
  if (display_width(text) <= cells) return text;
  return std::string(fit_width(text, std::max(cells - 1, 0))) + (cells > 0 ? "…" : "");
}

// Where a text that is too long for a line is broken: after the last space that fits, or beside the last wide character
// that does. No line begins with a closing mark.
size_t break_of(std::string_view text, int cells) {
  static constexpr std::string_view kClosing = "，。！？；：、”’）》」』…—";
  const size_t most = fit_width(text, cells).size();
  size_t best = 0;
  bool wide_before = false;
  for (size_t at = 0; at <= most && at < text.size();) {
    size_t length = 1;
    while (at + length < text.size() && (static_cast<unsigned char>(text[at + length]) & 0xC0) == 0x80) ++length;
    const std::string_view one = text.substr(at, length);
    const bool wide = display_width(one) == 2;
    const bool space_before = at > 0 && text[at - 1] == ' ';
    const bool closes = length > 1 && kClosing.find(one) != kClosing.npos;
    if (at > 0 && (space_before || one == " " || ((wide || wide_before) && !closes))) best = at;
    wide_before = wide;
    at += length;
  }
  return best > 0 ? best : std::max<size_t>(most, 1);
}

}  // namespace

std::string spaces(int count) {
  return std::string(static_cast<size_t>(std::max(count, 0)), ' ');
}

int terminal_columns() {
  if (const char* said = std::getenv("COLUMNS"); said != nullptr) {
    int columns = 0;
    const char* end = said + std::strlen(said);
    const auto [at, failed] = std::from_chars(said, end, columns);
    if (failed == std::errc{} && at == end && columns > 0) return columns;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::vector<std::string> wrap(std::string_view text, int cells) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at, end - at);
    while (display_width(rest) > cells) {
      const size_t line = break_of(rest, std::max(cells, 2));
      std::string_view kept = rest.substr(0, line);
      kept = kept.substr(0, kept.find_last_not_of(' ') + 1);
      lines.emplace_back(kept);
      rest.remove_prefix(line);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
    lines.emplace_back(rest);
    at = end + 1;
  }
  return lines;
}

std::string wrapped(std::string_view text, int cells, int indent) {
  std::string all;
  for (const std::string& line : wrap(text, cells - indent)) all += line.empty() ? "\n" : spaces(indent) + line + "\n";
  return all;
}

std::string in_cells(std::string_view text, int cells) {
  const std::string fitting = cut(shown(text), cells);
  return fitting + spaces(cells - display_width(fitting));
}

std::string in_cells_right(std::string_view text, int cells) {
  const std::string fitting = cut(shown(text), cells);
  return spaces(cells - display_width(fitting)) + fitting;
}

std::string heat(double share, int cells) {
  if (coloured()) {
    const Rgb c = heat_colour(share);
    return terminal_code(fmt::format("[48;2;{};{};{}m", c.r, c.g, c.b)) + spaces(cells) + terminal_code("[0m");
  }
  static constexpr std::string_view kShades = " .:-=+*#%@";
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * static_cast<double>(kShades.size() - 1);
  return std::string(static_cast<size_t>(cells), kShades[static_cast<size_t>(std::lround(at))]);
}

std::string on_heat(double share, std::string_view text, int cells) {
  const std::string fitting = in_cells(text, cells);
  if (!coloured()) return fitting;
  const Rgb c = heat_colour(share);
  const bool light = c.r * 3 + c.g * 6 + c.b > 1100;
  return terminal_code(fmt::format("[48;2;{};{};{};{}m", c.r, c.g, c.b, light ? "30" : "97")) + fitting +
         terminal_code("[0m");
}

std::string bar(double share, int cells) {
  static constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double at = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * cells;
  const auto eighths = static_cast<int>(std::lround(at * 8));
  std::string drawn;
  for (int i = 0; i < eighths / 8; ++i) drawn += "█";
  drawn += kEighths[static_cast<size_t>(eighths % 8)];
  return drawn + spaces(cells - display_width(drawn));
}

std::string signed_bar(double share, int cells) {
  const std::string drawn = bar(std::abs(share), cells);
  if (share >= 0) return spaces(cells) + "│" + drawn;
  // Eighths fill from the left; on the left side of the axis halves from the right do.
  const double at = std::clamp(std::isfinite(share) ? -share : 0.0, 0.0, 1.0) * cells;
  const auto halves = static_cast<int>(std::lround(at * 2));
  std::string left = spaces(cells - (halves + 1) / 2) + (halves % 2 == 1 ? "▐" : "");
  for (int i = 0; i < halves / 2; ++i) left += "█";
  return left + "│" + spaces(cells);
}

std::string sparkline(const std::vector<double>& values, int cells) {
  static constexpr std::array<std::string_view, 8> kLevels{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty() || cells <= 0) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = *high - *low;
  const size_t shown = std::min(static_cast<size_t>(cells), values.size());
  std::string drawn;
  for (size_t c = 0; c < shown; ++c) {
    const auto first = static_cast<std::ptrdiff_t>(values.size() * c / shown);
    const auto end = static_cast<std::ptrdiff_t>(values.size() * (c + 1) / shown);
    const double top = *std::max_element(values.begin() + first, values.begin() + end);
    drawn += kLevels[range > 0 ? static_cast<size_t>(std::lround((top - *low) / range * 7)) : 0];
  }
  return drawn;
}

std::string inked(Ink ink, std::string_view text) {
  if (!coloured() || ink == Ink::plain) return std::string(text);
  static constexpr std::array<std::string_view, 9> kCodes{"0", "2", "1", "31", "32", "33", "34", "35", "36"};
  return terminal_code(fmt::format("[{}m", kCodes[static_cast<size_t>(ink)])) + std::string(text) +
         terminal_code("[0m");
}

}  // namespace qkv::app

#include "judge/lab_show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/display_width.h"
#include "common/drawing.h"

namespace qkv::app {
namespace {

std::string lab_number(double x) {
  const double size = std::abs(x);
  if (size >= 1000) return fmt::format("{:.0f}", x);
  if (size != 0 && size < 0.01) return fmt::format("{:.2g}", x);
  return fmt::format("{:.3f}", x);
}

void print_lab_rows(const LabResult& result) {
  int widest = 0;
  for (const LabRow& row : result.rows) widest = std::max(widest, static_cast<int>(display_width(row.name)));
  const bool one_line = widest + 48 <= terminal_columns();
  for (const LabRow& row : result.rows) {
    std::string values = fmt::format("{:>9}", lab_number(row.mean));
    if (row.label) {
      values = "   ";
      for (const double v : row.values) values += fmt::format(" {:.0f}", v);
    } else if (row.values.size() > 1) {
      values += fmt::format("   95 % {} to {}, n {}", lab_number(row.low), lab_number(row.high), row.values.size());
    }
    if (one_line) {
      std::cout << "  " << in_cells(row.name, widest) << values << '\n';
    } else {
      std::cout << "  " << row.name << "\n    " << values << '\n';
    }
  }
}

// All series of one y, shaded on one scale.
void print_lab_curves(const LabResult& result) {
  std::vector<std::string> drawn;
  for (const SeedNumbers::Curve& first : result.curves) {
    if (std::find(drawn.begin(), drawn.end(), first.y) != drawn.end()) continue;
    drawn.push_back(first.y);
    double low = first.points.front().y, high = low;
    int widest = 0;
    for (const SeedNumbers::Curve& curve : result.curves) {
      if (curve.y != first.y) continue;
      widest = std::max(widest, static_cast<int>(display_width(curve.series)));
      for (const LabPoint& p : curve.points) {
        low = std::min(low, p.y);
        high = std::max(high, p.y);
      }
    }
    std::cout << fmt::format("\n  {}, over {} from {} to {} (dark {}, bright {})\n", first.y, first.x,
                             lab_number(first.points.front().x), lab_number(first.points.back().x), lab_number(low),
                             lab_number(high));
    for (const SeedNumbers::Curve& curve : result.curves) {
      if (curve.y != first.y) continue;
      std::cout << "    " << in_cells(curve.series, widest) << " [";
      const int cells = std::ssize(curve.points) <= 12 ? 3 : 1;
      for (const LabPoint& p : curve.points) std::cout << heat(high > low ? (p.y - low) / (high - low) : 0, cells);
      std::cout << "]\n";
    }
  }
}

Ink ink_of(Verdict verdict) {
  return verdict == Verdict::seen ? Ink::green : verdict == Verdict::not_seen ? Ink::red : Ink::yellow;
}

// Each part's claim, verdict and sentence.
void print_lab_parts(const Lab& lab, const LabResult& result) {
  for (size_t i = 0; i < lab.parts.size(); ++i) {
    const LabPart& part = lab.parts[i];
    const bool skipped = skipped_part(lab, result, i) != nullptr;
    std::cout << "\n  " << inked(Ink::bold, part.name) << ": "
              << inked(skipped ? Ink::dim : ink_of(result.parts[i]), skipped ? "skipped" : name_of(result.parts[i]))
              << '\n';
    const LabSentence found = part_conclusion(lab, result, i);
    std::cout << indented(part.claim.english) << indented(part.claim.chinese) << indented(found.english)
              << indented(found.chinese);
  }
}

void print_lab_verdict(const Lab& lab, const LabResult& result) {
  std::cout << '\n';
  for (const Judged& j : result.judged) {
    const bool above = j.rule.side == LabRule::Side::above;
    std::string left = "  " +
                       (j.skipped ? inked(Ink::dim, "-- ")
                        : j.held  ? inked(Ink::green, "yes")
                                  : inked(Ink::red, "no ")) +
                       ' ';
    const std::string rule =
        fmt::format("{} {} {} ({})", j.rule.number, above ? ">" : "<", lab_number(j.rule.bound), j.rule.why);
    for (const std::string& line : wrap(rule, std::max(terminal_columns() - 6, 20))) {
      std::cout << left << line << '\n';
      left.assign(6, ' ');
    }
  }
  const LabSentence found = conclusion(lab, result);
  std::cout << '\n' << indented(found.english) << indented(found.chinese);
  print_lab_parts(lab, result);
  std::cout << "\nverdict: " << inked(ink_of(result.verdict), name_of(result.verdict))
            << fmt::format(", {} seeds, {:.1f} s\n", result.seeds.size(), result.seconds);
  if (result.stopped) std::cout << "It was stopped: the numbers are of the seeds that were finished.\n";
}

}  // namespace

std::string indented(std::string text) {
  constexpr int kIndent = 2;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return wrapped(text, std::min(terminal_columns(), 100), kIndent);
}

void show_result(const Lab& lab, const LabResult& result) {
  print_lab_rows(result);
  print_lab_curves(result);
  print_lab_verdict(lab, result);
}

}  // namespace qkv::app

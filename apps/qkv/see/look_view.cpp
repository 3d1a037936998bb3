#include "see/look_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/display_width.h"
#include "common/drawing.h"

namespace qkv::app {
namespace {

constexpr int kLabel = 6;

// Spaces around a guess say nothing in a table; a token of spaces alone is shown as one.
std::string guess_word(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return text.empty() ? "·" : "␣";
  return with_part_signs(text.substr(begin));
}

KeptRows slice(const KeptRows& all, int64_t part, int64_t parts) {
  const int64_t begin = part * all.count / parts, end = std::max((part + 1) * all.count / parts, begin + 1);
  return {.first = all.first + begin, .count = end - begin};
}

struct WallShape {
  int64_t across = 1;         // heads of one line
  int width = 4, height = 2;  // of one head
  int64_t lines_of(int64_t heads) const { return (heads + across - 1) / across * (height + 1); }
};

WallShape shape_of_wall(int64_t heads, int columns, bool one_layer) {
  const int64_t room = columns - kLabel, fit = room / heads - 1;
  WallShape shape{.across = heads};
  if (fit < 4) {
    shape.across = std::max<int64_t>(room / 5, 1);
  } else {
    shape.width = static_cast<int>(std::min<int64_t>(fit, one_layer ? 24 : 12));
  }
  shape.height = std::max(shape.width / 2, 2);
  return shape;
}

void draw_layer(const LookView& view, const SeenAttention& a, const WallShape& shape) {
  const KeptRows all_keys{0, a.keys};
  for (int64_t first = 0; first < a.heads; first += shape.across) {
    const int64_t end = std::min(first + shape.across, a.heads);
    for (int line = 0; line < shape.height; ++line) {
      const std::string label = line == 0 ? name_of(view.at.spec, a.place) : "";
      view.out << in_cells(label + (line == 0 && first > 0 ? "+" : ""), kLabel);
      for (int64_t h = first; h < end; ++h) {
        for (int c = 0; c < shape.width; ++c) {
          const double share = share_of(a, h, slice(a.rows, line, shape.height), slice(all_keys, c, shape.width));
          view.out << heat(std::sqrt(share), 1);
        }
        view.out << (h + 1 < end ? " " : "");
      }
      view.out << '\n';
    }
    std::string under(kLabel, ' ');
    for (int64_t h = first; h < end; ++h) {
      const std::string entropy = fmt::format("{:.2f}", a.entropy[static_cast<size_t>(h)]);
      const std::string name = shape.width >= 8 ? fmt::format("H{} {}", h, entropy) : entropy;
      under += in_cells(name, shape.width) + (h + 1 < end ? " " : "");
    }
    view.out << inked(Ink::dim, under) << '\n';
  }
}

// Evenly over all of them, first and last included.
std::vector<size_t> some_of(size_t all, size_t most) {
  std::vector<size_t> picked;
  for (size_t i = 0; i < std::min(all, most); ++i) picked.push_back(most >= all ? i : i * (all - 1) / (most - 1));
  return picked;
}

}  // namespace

KeptRows window_of(const KeptRows& rows, int64_t token, int64_t most) {
  const int64_t count = std::min(rows.count, std::max<int64_t>(most, 1));
  return {.first = std::clamp(token - count * 3 / 4, rows.first, rows.first + rows.count - count), .count = count};
}

std::string percent(double share) {
  return share >= 0.9995 ? "100" : fmt::format("{:.{}f}", 100 * share, share < 0.0995 ? 1 : 0);
}

double share_of(const SeenAttention& a, int64_t head, const KeptRows& rows, const KeptRows& keys) {
  double sum = 0;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
    if (!a.pattern.empty()) {
      for (int64_t j = keys.first; j < keys.first + keys.count; ++j) sum += static_cast<double>(a.weight(i, head, j));
    } else {
      for (const TopKey& top : a.top_of(i, head)) sum += keys.has(top.key) ? static_cast<double>(top.weight) : 0.0;
    }
  }
  return sum / static_cast<double>(rows.count);
}

void draw_title(const LookView& view, const std::string& text, const std::string& more) {
  view.out << '\n' << inked(Ink::bold, text) << '\n';
  if (more.empty()) return;
  for (const std::string& line : wrap(more, view.columns)) view.out << inked(Ink::dim, line) << '\n';
}

std::string word_of(const ShownToken& token) {
  return token.continues ? "·" : guess_word(token.text);
}

void draw_tokens(const LookView& view) {
  constexpr int64_t kMost = 120;
  constexpr int kWidest = 24;
  const auto list = [&](const char* name, const std::vector<ShownToken>& tokens, int64_t asked) {
    const KeptRows rows = window_of({0, std::ssize(tokens)}, std::max<int64_t>(asked, 0), kMost);
    draw_title(
        view, fmt::format("{}, {} token{}", name, tokens.size(), tokens.size() == 1 ? "" : "s"),
        rows.count == std::ssize(tokens) ? "" : fmt::format("{} to {}", rows.first, rows.first + rows.count - 1));
    int column = 0;
    for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
      const std::string number = std::to_string(i), shown = word_of(tokens[static_cast<size_t>(i)]);
      const int width = std::min(display_width(shown), kWidest), cells = display_width(number) + width + 3;
      if (column > 0 && column + cells > view.columns) {
        view.out << '\n';
        column = 0;
      }
      view.out << inked(Ink::dim, number) << ' ' << inked(i == asked ? Ink::bold : Ink::plain, in_cells(shown, width))
               << "  ";
      column += cells;
    }
    view.out << '\n';
  };
  if (!view.at.source.empty()) list("source", view.at.source, -1);
  list(view.at.source.empty() ? "text" : "target", view.at.tokens, view.at.seen.token);
}

void draw_ladder(const LookView& view) {
  const LookedAt& at = view.at;
  const int room = view.columns - kLabel;
  const KeptRows rows = window_of(at.ladder.rows, at.seen.token, room / 10);
  const int cell = std::min<int>(room / static_cast<int>(rows.count), 16);
  draw_title(view, view.words("guesses layer by layer", "逐层的猜测"),
             view.words("the top guess after each layer, from bottom to top; └ is where a guess settles and stays",
                        "每一层之后最可能的下一个词元，自下而上；└ 表示猜测从这里起不再改变"));
  bool parts = false;  // of characters, shown as a sign that the last line explains
  const auto line = [&](const std::string& label, const auto& text) {
    view.out << inked(Ink::dim, in_cells(label, kLabel));
    for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      const std::string shown = text(r);
      parts = parts || shown.find(kPartOfCharacter) != std::string::npos;
      view.out << shown;
    }
    view.out << '\n';
  };
  const size_t top = at.ladder.levels.size() - 1;
  const bool predicts = at.spec.kind != ModelSpec::Kind::encoder_only;
  if (predicts) {
    line(view.words("next", "实际"), [&](int64_t r) {
      if (r + 1 >= std::ssize(at.tokens)) return std::string(static_cast<size_t>(cell), ' ');
      const int32_t next = at.seen.text.ids[static_cast<size_t>(r + 1)];
      const bool right = at.ladder.at(top, r).guesses.front().id == next;
      return inked(right ? Ink::green : Ink::red,
                   in_cells((right ? "✓" : " ") + guess_word(at.guess_text(r, next)), cell));
    });
  }
  line(view.words("p", "概率"),
       [&](int64_t r) { return in_cells(" " + percent(at.ladder.at(top, r).guesses.front().p) + " %", cell); });
  for (size_t level = top + 1; level-- > 0;) {
    const std::string name = at.level_name(level);
    const char* label = level == 0     ? view.words("embed", "嵌入")
                        : level == top ? view.words("out", "输出")
                                       : name.c_str();
    line(label, [&](int64_t r) {
      const size_t settled = at.ladder.settled[static_cast<size_t>(r - at.ladder.rows.first)];
      const std::string mark = level < settled ? " " : level == settled ? "└" : "│";
      const std::string guess = guess_word(at.guess_text(r, at.ladder.at(level, r).guesses.front().id));
      return inked(level < settled ? Ink::dim : Ink::bold, mark + in_cells(guess, cell - 2)) + " ";
    });
  }
  line("", [&](int64_t) { return inked(Ink::dim, " ") + std::string(static_cast<size_t>(cell - 2), '-') + " "; });
  line(view.words("token", "词元"), [&](int64_t r) {
    const std::string shown = in_cells(" " + word_of(at.tokens[static_cast<size_t>(r)]), cell);
    return inked(r == at.seen.token ? Ink::cyan : Ink::plain, shown);
  });
  line("", [&](int64_t r) { return inked(Ink::dim, in_cells(" " + std::to_string(r), cell)); });
  if (parts) {
    view.out << inked(Ink::dim, std::string(kPartOfCharacter) + view.words(": part of a character", "：一个字的一部分"))
             << '\n';
  }
}

void draw_wall(const LookView& view, int64_t layer) {
  constexpr int64_t kLines = 64;
  for (const Stack stack : {Stack::encoder, Stack::decoder, Stack::cross}) {
    std::vector<const SeenAttention*> list;
    for (const SeenAttention& a : view.at.seen.attentions) {
      if (a.place.stack == stack && (layer < 0 || a.place.layer == layer)) list.push_back(&a);
    }
    if (list.empty()) continue;
    int64_t heads = 1;
    for (const SeenAttention* a : list) heads = std::max(heads, a->heads);
    const WallShape shape = shape_of_wall(heads, view.columns, list.size() == 1);
    const auto most = static_cast<size_t>(std::max<int64_t>(kLines / shape.lines_of(heads), 2));
    const std::vector<size_t> picked = some_of(list.size(), most);
    const char* who = stack == Stack::cross     ? "attention of the target to the source"
                      : !view.at.source.empty() ? (stack == Stack::encoder ? "attention of the source to itself"
                                                                           : "attention of the target to itself")
                                                : "attention maps";
    std::string more = "one picture per head: rows are queries, columns are keys; below it the mean entropy in nats";
    if (picked.size() < list.size()) {
      more += fmt::format(". {} of {} layers: --layer shows any", picked.size(), list.size());
    }
    if (!view.at.seen.whole) more += ". Rows around the token, their 8 heaviest keys";
    draw_title(view, who, more);
    for (const size_t i : picked) draw_layer(view, *list[i], shape);
  }
}

}  // namespace qkv::app

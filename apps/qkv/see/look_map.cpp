// One head, drawn large with its tokens on both sides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/drawing.h"
#include "see/look_view.h"
#include "text/unicode/utf8.h"

namespace qkv::app {

void draw_map(const LookView& view, const HeadId& head) {
  constexpr int kSide = 10, kRight = 18, kHigh = 5;
  constexpr int64_t kMostRows = 48;
  const LookedAt& at = view.at;
  const SeenAttention& a = at.seen.at(head.place());
  const std::vector<ShownToken>&queries = at.queries_of(a), &keys = at.keys_of(a);
  const bool own = &queries == &at.tokens;
  const int64_t token = own ? at.seen.token : 0;
  const int64_t room = view.columns - kSide - kRight;
  const int cell = a.keys * 4 <= room ? 4 : 2;
  const int64_t centre = &keys == &queries ? token : std::max(a.top_of(token, head.head).front().key, 0);
  const KeptRows shown = window_of({0, a.keys}, centre, room / cell);
  const KeptRows rows = window_of(a.rows, token, &keys == &queries ? std::min(kMostRows, shown.count) : kMostRows);
  std::string more = fmt::format(
      "rows are queries, columns are keys, in %; on the right the key with the largest share; mean entropy {:.2f} nats "
      "of {:.2f} at most",
      a.entropy[static_cast<size_t>(head.head)], std::log(static_cast<double>(a.keys)));
  if (shown.count < a.keys || rows.count < a.queries) {
    more += fmt::format(". Rows {} to {} of {}, keys {} to {} of {}", rows.first, rows.first + rows.count - 1,
                        a.queries, shown.first, shown.first + shown.count - 1, a.keys);
  }
  draw_title(view, "head " + name_of(at.spec, head), more);
  // Key tokens from top to bottom.
  std::vector<std::vector<std::string>> letters;
  for (int64_t j = shown.first; j < shown.first + shown.count; ++j) {
    std::vector<std::string> of_key;
    const std::string text = word_of(keys[static_cast<size_t>(j)]);
    for (std::string_view rest = text; !rest.empty() && of_key.size() < kHigh;) {
      of_key.emplace_back(first_grapheme(rest));
      rest.remove_prefix(of_key.back().size());
    }
    letters.push_back(std::move(of_key));
  }
  size_t high = 0;
  for (const auto& of_key : letters) high = std::max(high, of_key.size());
  for (size_t line = 0; line < high; ++line) {
    view.out << std::string(kSide, ' ');
    for (const auto& of_key : letters) {
      const size_t skipped = high - of_key.size();
      view.out << in_cells_right(line < skipped ? "" : of_key[line - skipped], cell);
    }
    view.out << '\n';
  }
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
    const bool asked = own && i == at.seen.token;
    view.out << inked(asked ? Ink::cyan : Ink::plain,
                      in_cells_right(word_of(queries[static_cast<size_t>(i)]), kSide - 1))
             << ' ';
    for (int64_t j = shown.first; j < shown.first + shown.count; ++j) {
      const double share = share_of(a, head.head, {i, 1}, {j, 1});
      const std::string number = share >= 0.005 ? fmt::format("{:>{}.0f}", 100 * share, cell - 1) : "";
      view.out << (cell > 2 ? on_heat(std::sqrt(share), number, cell) : heat(std::sqrt(share), cell));
    }
    const TopKey best = a.top_of(i, head.head).front();
    if (best.key >= 0) {
      view.out << " → " << in_cells(word_of(keys[static_cast<size_t>(best.key)]), 8) << ' '
               << percent(static_cast<double>(best.weight)) << " %";
    }
    view.out << '\n';
  }
}

}  // namespace qkv::app

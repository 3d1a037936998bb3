// One token's path through the layers, drawn: a line per layer, or in full.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/display_width.h"
#include "common/drawing.h"
#include "see/look_view.h"

namespace qkv::app {
namespace {

constexpr size_t kHeads = 3, kMatches = 3, kNumbers = 4;

std::string numbers(std::span<const float> x, int columns) {
  std::string out;
  const size_t most = columns < 72 ? kNumbers - 1 : columns < 100 ? kNumbers : 2 * kNumbers;
  for (size_t i = 0; i < std::min(most, x.size()); ++i) out += fmt::format("{:.2f} ", x[i]);
  return out + (x.size() > most ? "…" : "");
}

// On one line and not too long, whatever a token holds.
std::string brief(const std::string& token) {
  const std::string text = with_part_signs(token);
  return in_cells(text, std::clamp(display_width(text), 1, 16));
}

std::string quoted(const ShownToken& token) {
  return token.continues ? "·" : "'" + brief(token.text) + "'";
}

std::string guesses(const LookedAt& at, size_t level, size_t most) {
  const std::vector<Guess>& all = at.ladder.at(level, at.seen.token).guesses;
  std::string out;
  for (const Guess& guess : std::span(all).first(std::min(most, all.size()))) {
    out += fmt::format("{}'{}' {:.0f} %", out.empty() ? "" : ", ", brief(at.guess_text(at.seen.token, guess.id)),
                       100 * guess.p);
  }
  return out;
}

std::vector<const HeadStory*> strongest(const AttentionStory& a) {
  std::vector<const HeadStory*> heads;
  for (const HeadStory& head : a.heads) heads.push_back(&head);
  std::stable_sort(heads.begin(), heads.end(),
                   [](const HeadStory* x, const HeadStory* y) { return x->out_norm > y->out_norm; });
  return heads;
}

class Teller {
 public:
  Teller(const LookView& view, bool in_full) : view_(view), at_(view.at), in_full_(in_full) {}

  void tell(const LayerStory& layer) {
    const SeenLayer& seen = *layer.seen;
    view_.out << '\n'
              << inked(Ink::bold, fmt::format("layer {}", layer.layer))
              << fmt::format("   residual stream in: x [{}], |x| {:.2f}\n", seen.pre_at.size(), norm_of(seen.pre_at));
    for (const AttentionStory& a : layer.attentions) attention(a);
    say("+ stream", fmt::format("x [{}] = {}", seen.mid_at.size(), numbers(seen.mid_at, view_.columns)), seen.mid_at);
    feed_forward(seen);
    say("+ stream", fmt::format("x [{}] = {}", seen.post_at.size(), numbers(seen.post_at, view_.columns)),
        seen.post_at);
    line("guesses", guesses(at_, static_cast<size_t>(layer.layer) + 1, 3), Ink::green);
  }

 private:
  void line(std::string_view label, const std::string& text, Ink ink = Ink::plain) {
    const int cells = std::min(display_width(text), view_.columns - 12);
    view_.out << "  " << in_cells(label, 10) << inked(ink, in_cells(text, cells)) << '\n';
  }
  void say(std::string_view label, const std::string& text, std::span<const float> vector) {
    const std::string end = fmt::format("  |x| {:.2f}", norm_of(vector));
    const int room = view_.columns - 12 - display_width(end);
    view_.out << "  " << in_cells(label, 10) << in_cells(text, std::min(room, display_width(text))) << end << '\n';
  }

  void attention(const AttentionStory& a) {
    const std::vector<ShownToken>& keys = at_.keys_of(at_.seen.at(a.place));
    if (a.place.stack == Stack::cross) line("", "then attention to the source");
    const std::vector<const HeadStory*> heads = strongest(a);
    const size_t shown = in_full_ ? heads.size() : std::min(kHeads, heads.size());
    line("", fmt::format("score = q·k x {:.4g}, shares = softmax of the scores", a.heads.front().scale), Ink::dim);
    line("", fmt::format("{:<11}{:>7} {:>7} {:>7} {:>8}", "  key", "q·k", "score", "share", "|v W_O|"), Ink::dim);
    for (size_t i = 0; i < shown; ++i) tell_head(*heads[i], keys);
    if (shown < heads.size()) {
      line("",
           fmt::format("and {} head{} with smaller output", heads.size() - shown, heads.size() - shown == 1 ? "" : "s"),
           Ink::dim);
    }
    view_.out << "  " << in_cells("concat", 10)
              << fmt::format("z [{}] of {} heads, then W_O [{} x {}]\n", a.concat.size(), a.heads.size(),
                             a.concat.size(), a.out.size());
    say("attention", fmt::format("[{}] = {}", a.out.size(), numbers(a.out, view_.columns)), a.out);
  }

  void tell_head(const HeadStory& head, const std::vector<ShownToken>& keys) {
    view_.out << "  " << inked(Ink::cyan, in_cells(name_of(at_.spec, head.head), 10))
              << fmt::format("query q [{}] = {}  |q| {:.2f}\n", head.q.size(), numbers(head.q, view_.columns),
                             norm_of(head.q));
    const size_t shown = std::min(in_full_ ? head.matches.size() : kMatches, head.matches.size());
    double rest = head.others;
    for (size_t i = 0; i < head.matches.size(); ++i) {
      const Match& m = head.matches[i];
      if (i >= shown) {
        rest += m.share;
        continue;
      }
      const std::string key = fmt::format("{} {}", m.key, quoted(keys[static_cast<size_t>(m.key)]));
      const int wide = std::clamp(view_.columns - 60, 0, 24);
      view_.out << std::string(12, ' ') << in_cells(key, 11)
                << fmt::format("{:>7.2f} {:>7.2f} {:>5.1f} % {:>8.3f}", m.qk, m.score, 100 * m.share, m.value_norm);
      if (wide > 4) view_.out << "  " << inked(Ink::yellow, bar(m.share, wide));
      view_.out << '\n';
    }
    const int64_t others = head.other_keys + static_cast<int64_t>(head.matches.size() - shown);
    if (others > 0)
      line("", fmt::format("{} other key{}: {:.1f} %", others, others == 1 ? "" : "s", 100 * rest), Ink::dim);
    if (head.nowhere > 5e-4) line("", fmt::format("to no key (its sink): {:.1f} %", 100 * head.nowhere), Ink::dim);
    line("", fmt::format("output |z| {:.2f}, after W_O {:.2f}", head.z_norm, head.out_norm), Ink::dim);
  }

  void feed_forward(const SeenLayer& seen) {
    if (seen.mlp_at.empty()) return;  // a layer of attention alone
    if (!seen.experts_at.empty()) {
      std::string text;
      for (size_t i = 0; i < seen.experts_at.size(); ++i) {
        text += fmt::format("{}expert {} x {:.2f}", i == 0 ? "" : ", ", seen.experts_at[i], seen.expert_weights_at[i]);
      }
      line("router", text);
    }
    if (!seen.inner_at.empty()) {
      const auto most = std::max_element(seen.inner_at.begin(), seen.inner_at.end(),
                                         [](float a, float b) { return std::abs(a) < std::abs(b); });
      line("feed-fwd", fmt::format("[{}] -> [{}] -> [{}], largest unit {}: {:.2f}", seen.mlp_at.size(),
                                   seen.inner_at.size(), seen.mlp_at.size(), most - seen.inner_at.begin(), *most));
    }
    say("output", fmt::format("[{}] = {}", seen.mlp_at.size(), numbers(seen.mlp_at, view_.columns)), seen.mlp_at);
  }

  const LookView& view_;
  const LookedAt& at_;
  bool in_full_;
};

void head_line(const LookView& view, const char* more) {
  const ShownToken& token = view.at.tokens[static_cast<size_t>(view.at.seen.token)];
  view.out << '\n'
           << inked(Ink::bold, fmt::format("the path of token {} {}", view.at.seen.token, quoted(token))) << '\n'
           << inked(Ink::dim, more) << '\n';
}

}  // namespace

void draw_path(const LookView& view) {
  head_line(view, "sizes of what attention and feed-forward add, and the top guess after each layer");
  const int key = view.columns < 72 ? 5 : 9, who = key + 12, says = view.columns - who - 29;
  view.out << inked(Ink::dim, fmt::format("{:<6}{:>6}  {}{:>6}{:>7}  guess\n", "layer", "attn",
                                          in_cells("strongest head", who), "ffn", "stream"));
  for (const LayerStory& layer : story_of(view.at.spec, view.at.seen)) {
    for (const AttentionStory& a : layer.attentions) {
      const HeadStory& strong = *strongest(a).front();
      std::string looks = name_of(view.at.spec, strong.head);
      if (!strong.matches.empty()) {
        const Match& match = strong.matches.front();
        const ShownToken& token = view.at.keys_of(view.at.seen.at(a.place))[static_cast<size_t>(match.key)];
        looks += " " + in_cells(word_of(token), key) + fmt::format(" {:.0f} %", 100 * match.share);
      }
      view.out << fmt::format("{:<6}{:>6.1f}  {}", name_of(view.at.spec, a.place), norm_of(a.out),
                              in_cells(looks, who));
      if (&a == &layer.attentions.back()) {
        const std::string guess = guesses(view.at, static_cast<size_t>(layer.layer) + 1, view.columns < 100 ? 1 : 2);
        const std::string feed = layer.seen->mlp_at.empty() ? "-" : fmt::format("{:.1f}", norm_of(layer.seen->mlp_at));
        view.out << fmt::format("{:>6}{:>7.1f}  ", feed, norm_of(layer.seen->post_at))
                 << inked(Ink::green, in_cells(guess, std::min(says, display_width(guess))));
      }
      view.out << '\n';
    }
  }
}

void draw_story(const LookView& view, int64_t layer) {
  head_line(view, layer < 0 ? "the heads with the largest output in each layer; --layer shows all of one"
                            : "all heads of one layer");
  if (layer < 0) view.out << "  after the embedding: " << guesses(view.at, 0, 3) << '\n';
  Teller teller(view, layer >= 0);
  for (const LayerStory& one : story_of(view.at.spec, view.at.seen)) {
    if (layer < 0 || one.layer == layer) teller.tell(one);
  }
}

}  // namespace qkv::app

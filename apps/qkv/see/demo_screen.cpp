#include "see/demo_screen.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "base/printable.h"
#include "base/terminal.h"
#include "common/drawing.h"
#include "common/terminal.h"
#include "inspect/watch/movie.h"
#include "text/sentence_end.h"

namespace qkv::app {
namespace {

constexpr auto kBetweenDraws = std::chrono::milliseconds(200);

struct RoleLetter {
  WatchedRole role;
  char letter;
};
constexpr std::array kLetters{RoleLetter{WatchedRole::previous, 'P'}, RoleLetter{WatchedRole::duplicate, 'D'},
                              RoleLetter{WatchedRole::induction, 'I'}, RoleLetter{WatchedRole::first, 'F'}};

// A text in lines of so many cells, at most `most` of them.
std::vector<std::string> first_lines(std::string text, int cells, size_t most) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::vector<std::string> lines = wrap(text, cells);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  lines.back() = in_cells(lines.back() + "…", cells);
  return lines;
}

}  // namespace

DemoScreen::DemoScreen(bool chinese, int64_t steps)
    : chinese_(chinese), terminal_(may_move_cursor(STDOUT_FILENO)), steps_(steps) {}

TrainObserver DemoScreen::observer() {
  return {.on_step = [this](const StepReport& report, const TrainCounters& counters) { on_step(report, counters); },
          .on_samples =
              [this](const std::vector<std::string>& samples) {
                sample_ = escaped(up_to_sentence_end(samples.front()));
                if (terminal_) return draw();
                const double loss = losses_.empty() ? 0 : losses_.back();
                const char* how =
                    chinese_ ? "第 {} 步，损失 {:.3f}，它写道：{}" : "step {}, loss {:.3f}, it writes: {}";
                const std::string shown = !sample_.empty() ? sample_ : chinese_ ? "（还没有文字）" : "(no text yet)";
                std::cout << wrapped(fmt::format(fmt::runtime(how), step_, loss, shown), terminal_columns());
                std::cout.flush();
              },
          .on_snapshot = [this](const Snapshot& snapshot, const WatchPlan& plan) { on_snapshot(snapshot, plan); }};
}

void DemoScreen::on_step(const StepReport& report, const TrainCounters& counters) {
  step_ = counters.step;
  seconds_ = counters.seconds;
  rate_ = static_cast<double>(report.result.tokens) / report.seconds;
  losses_.push_back(report.result.loss);
  if (terminal_ && Clock::now() - last_ > kBetweenDraws) draw();
}

void DemoScreen::on_snapshot(const Snapshot& snapshot, const WatchPlan& plan) {
  names_ = plan.heads;
  heads_.clear();
  for (const auto& roles : snapshot.roles) {
    HeadNow now;
    for (const auto& [role, letter] : kLetters) {
      const Estimate score = estimate(roles[static_cast<size_t>(role)]);
      if (has_role(role, score) && score.mean > now.score) now = {letter, score.mean};
    }
    heads_.push_back(now);
  }
  if (terminal_) draw();
}

std::vector<std::string> DemoScreen::lines() const {
  const int columns = std::clamp(terminal_columns() - 1, 30, 100);
  const double share = static_cast<double>(step_) / static_cast<double>(steps_);
  const double left = step_ > 0 ? seconds_ / static_cast<double>(step_) * static_cast<double>(steps_ - step_) : 0;
  std::vector<std::string> all;
  all.push_back(fmt::format(fmt::runtime(chinese_ ? "第 {} / {} 步  损失 {:.3f}  每秒 {:.1f} 千词元  还要 {:.0f} 秒"
                                                  : "step {} of {}  loss {:.3f}  {:.1f} k tokens/s  {:.0f} s left"),
                            step_, steps_, losses_.empty() ? 0 : losses_.back(), rate_ / 1e3, left));
  all.push_back(inked(Ink::cyan, bar(share, columns)));
  all.push_back((chinese_ ? "损失 " : "loss ") + inked(Ink::yellow, sparkline(losses_, columns - 5)));
  for (size_t i = 0; i < heads_.size();) {
    const std::string layer = names_[i].substr(0, names_[i].find('H'));
    std::string row = in_cells(layer, 5);
    for (; i < heads_.size() && names_[i].substr(0, names_[i].find('H')) == layer; ++i) {
      const HeadNow& head = heads_[i];
      const std::string text = head.letter == '.' ? "" : fmt::format(" {} {:2.0f}", head.letter, 100 * head.score);
      row += on_heat(head.score, text, 6) + " ";
    }
    all.push_back(row);
  }
  if (!heads_.empty()) {
    all.push_back(inked(Ink::dim, in_cells(chinese_ ? "P 看前一个  D 看相同的  I 归纳  F 看开头 (%)"
                                                    : "P previous  D duplicate  I induction  F first (%)",
                                           columns)));
  }
  if (!sample_.empty()) {
    all.push_back(chinese_ ? "它写道：" : "it writes:");
    for (const std::string& line : first_lines(sample_, columns - 2, 4)) all.push_back("  " + inked(Ink::green, line));
  }
  return all;
}

void DemoScreen::draw() {
  last_ = Clock::now();
  std::string out = drawn_ > 0 ? terminal_code(fmt::format("[{}A", drawn_)) : "";
  const std::vector<std::string> now = lines();
  for (const std::string& line : now) out += terminal_code("[2K") + line + "\n";
  for (size_t i = now.size(); i < drawn_; ++i) out += terminal_code("[2K") + "\n";  // what was longer before
  drawn_ = std::max(drawn_, now.size());
  std::cout << out;
  std::cout.flush();
}

void DemoScreen::finish() {
  if (terminal_ && step_ > 0) draw();
  drawn_ = 0;
}

}  // namespace qkv::app

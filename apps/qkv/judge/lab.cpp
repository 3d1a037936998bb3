// qkv lab: claims about Transformers as experiments that anyone can run and that can fail.
#include "labs/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include "base/display_width.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/compute_options.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/reports.h"

namespace qkv::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kLabExamples =
    R"(Each lab starts from zero: no files, no downloads, minutes on two cores. What would count as seen is fixed before
anything is measured: a rule holds if the whole 95 % interval over the seeds (Student's t) lies on its side. Seen: all
rules hold. Not seen: none does. Mixed: some do. Exit code 0 if seen, else 1.

Examples:
  qkv lab --list                         what there is, with its claim
  qkv lab causality                      the quickest: seconds
  qkv lab induction --seeds 5            more seeds, narrower intervals
  qkv lab one-head --out one-head.json   all numbers of all seeds)";

struct LabArguments {
  std::string name;
  ReportOptions report;
  int64_t seeds = 0;
  ComputeOptions compute;
  bool list = false, lines = false;
};

// Wrapped at the terminal's width.
std::string indented(std::string text) {
  constexpr int kIndent = 2;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return wrapped(text, std::min(terminal_columns(), 100), kIndent);
}

void list_labs() {
  for (const Lab* lab : all_labs()) {
    std::cout << inked(Ink::bold, lab->name) << '\n' << indented(lab->claim) << indented(lab->claim_zh) << '\n';
  }
}

void list_labs_json() {
  OrderedJson all = OrderedJson::array();
  for (const Lab* lab : all_labs()) {
    all.push_back({{"name", lab->name}, {"claim", lab->claim}, {"claim_zh", lab->claim_zh}, {"how", lab->how}});
  }
  print_json(all);
}

std::string number(double x) {
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
    std::string values = fmt::format("{:>9}", number(row.mean));
    if (row.label) {
      values = "   ";
      for (const double v : row.values) values += fmt::format(" {:.0f}", v);
    } else if (row.values.size() > 1) {
      values += fmt::format("   95 % {} to {}, n {}", number(row.low), number(row.high), row.values.size());
    }
    if (one_line) {
      std::cout << "  " << in_cells(row.name, widest) << values << '\n';
    } else {
      std::cout << "  " << row.name << "\n    " << values << '\n';
    }
  }
}

// All series of one y, shaded on one scale.
void print_curves(const LabResult& result) {
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
                             number(first.points.front().x), number(first.points.back().x), number(low), number(high));
    for (const SeedNumbers::Curve& curve : result.curves) {
      if (curve.y != first.y) continue;
      std::cout << "    " << in_cells(curve.series, widest) << " [";
      const int cells = std::ssize(curve.points) <= 12 ? 3 : 1;
      for (const LabPoint& p : curve.points) std::cout << heat(high > low ? (p.y - low) / (high - low) : 0, cells);
      std::cout << "]\n";
    }
  }
}

void print_verdict(const LabResult& result) {
  std::cout << '\n';
  for (const Judged& j : result.judged) {
    const bool above = j.rule.side == LabRule::Side::above;
    std::string left = "  " + (j.held ? inked(Ink::green, "yes") : inked(Ink::red, "no ")) + ' ';
    const std::string rule =
        fmt::format("{} {} {} ({})", j.rule.number, above ? ">" : "<", number(j.rule.bound), j.rule.why);
    for (const std::string& line : wrap(rule, std::max(terminal_columns() - 6, 20))) {
      std::cout << left << line << '\n';
      left.assign(6, ' ');
    }
  }
  const Ink ink = result.verdict == Verdict::seen       ? Ink::green
                  : result.verdict == Verdict::not_seen ? Ink::red
                                                        : Ink::yellow;
  std::cout << "\nverdict: " << inked(ink, name_of(result.verdict))
            << fmt::format(", {} seeds, {:.1f} s\n", result.seeds.size(), result.seconds);
  if (result.stopped) std::cout << "It was stopped: the numbers are of the seeds that were finished.\n";
}

OrderedJson lab_report(const Lab& lab, const LabResult& result, const Engine& engine) {
  OrderedJson out{{"lab", lab.name},
                  {"claim", lab.claim},
                  {"verdict", name_of(result.verdict)},
                  {"stopped", result.stopped},
                  {"seeds", result.seeds},
                  {"seconds", result.seconds},
                  {"checks", result.each.front().checks},
                  {"device", engine.device().name()},
                  {"threads", engine.threads()},
                  {"interval", "95 %, Student's t over seeds"},
                  {"rows", OrderedJson::array()},
                  {"rules", OrderedJson::array()},
                  {"curves", OrderedJson::array()}};
  for (const LabRow& row : result.rows) {
    OrderedJson one{{"name", row.name}, {"n", row.values.size()}, {"values", row.values}};
    if (!row.label) one.update({{"mean", row.mean}, {"low", row.low}, {"high", row.high}});
    out["rows"].push_back(std::move(one));
  }
  for (const Judged& j : result.judged) {
    out["rules"].push_back({{"number", j.rule.number},
                            {"side", j.rule.side == LabRule::Side::above ? "above" : "below"},
                            {"bound", j.rule.bound},
                            {"why", j.rule.why},
                            {"held", j.held}});
  }
  for (size_t c = 0; c < result.curves.size(); ++c) {
    const SeedNumbers::Curve& mean = result.curves[c];
    OrderedJson curve{{"x", mean.x}, {"y", mean.y}, {"series", mean.series}, {"points", OrderedJson::array()}};
    for (size_t p = 0; p < mean.points.size(); ++p) {
      OrderedJson values = OrderedJson::array();
      for (const SeedNumbers& seed : result.each) values.push_back(seed.curves[c].points[p].y);
      curve["points"].push_back({{"x", mean.points[p].x}, {"mean", mean.points[p].y}, {"values", values}});
    }
    out["curves"].push_back(std::move(curve));
  }
  return out;
}

// A line of JSON for what is being done, a few each second.
class ProgressLines {
 public:
  void tell(const LabProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_ && progress.checks > 1) return;
    next_ = now + std::chrono::milliseconds(250);
    std::cout << OrderedJson{{"seed", progress.seed},
                             {"seeds", progress.seeds},
                             {"checks", progress.checks},
                             {"doing", progress.doing}}
                     .dump()
              << std::endl;
  }

 private:
  std::chrono::steady_clock::time_point next_ = {};
};

void run_lab(const LabArguments& options) {
  if (options.list) return options.report.json ? list_labs_json() : list_labs();
  QKV_CHECK(!options.name.empty(), "which lab?", Hint("qkv lab --list  shows them"));
  const Lab& lab = lab_named(options.name);
  constexpr int64_t kNeeded = int64_t{2} << 30;  // more than any lab's model and batch take
  const Engine engine(kernels_for(options.compute, kNeeded), {.threads = options.compute.threads});
  const bool quiet = options.report.json || options.lines;
  if (!quiet) {
    std::cout << inked(Ink::bold, lab.name) << '\n'
              << indented(lab.claim) << indented(lab.claim_zh) << '\n'
              << indented(lab.how) << std::endl;
  }
  LabResult result;
  {
    const InterruptWatch interrupt({SIGINT, SIGTERM});
    Progress progress(lab.name, 0);
    ProgressLines lines;
    int64_t told = 0;
    result = run_lab(
        lab,
        {.engine = engine,
         .stop = [&] { return interrupt.seen(); },
         .progress =
             [&](const LabProgress& now) { options.lines ? lines.tell(now) : progress.update(++told, now.text()); }},
        options.seeds > 0 ? options.seeds : lab.seeds);
  }
  if (result.each.empty()) {
    std::cerr << fmt::format("stopped after {:.0f} s, before the first seed was finished: nothing to say\n",
                             result.seconds);
    throw Interrupted();
  }
  if (!quiet) {
    print_lab_rows(result);
    print_curves(result);
    print_verdict(result);
  }
  const OrderedJson report = lab_report(lab, result, engine);
  if (options.lines) std::cout << report.dump() << std::endl;
  write_report(options.report, report);
  if (result.stopped) throw Interrupted();
  if (result.verdict != Verdict::seen) throw AnswerNo();
}

}  // namespace

void add_lab(Command app) {
  const Command command = app.add_command("lab", "Run an experiment that can fail: induction, causality, ...");
  const auto options = std::make_shared<LabArguments>();  // lives as long as the callback
  std::vector<std::string> names;
  for (const Lab* lab : all_labs()) names.emplace_back(lab->name);
  command.add_option("NAME", options->name, "Which lab; --list shows them").known(names);
  command.add_flag("--list", options->list, "List the labs with their claims");
  command.add_option("--seeds", options->seeds, "How many seeds, 3 or more; otherwise as many as the lab needs");
  add_report_options(command, options->report);
  command
      .add_flag("--lines", options->lines,
                "Print lines of JSON and nothing else: what is being done as it goes, and the report at the end")
      .excludes(command.option("--json"));
  add_compute_options(command, options->compute);
  command.footer(kLabExamples);
  command.callback([options] { run_lab(*options); });
}

}  // namespace qkv::app

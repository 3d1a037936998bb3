// qkv lab: claims about Transformers as experiments that anyone can run and that can fail.
#include "labs/lab.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/compute_options.h"
#include "common/drawing.h"
#include "common/interrupt.h"
#include "common/reports.h"
#include "judge/lab_report.h"
#include "judge/lab_show.h"
#include "labs/recorded.h"

namespace qkv::app {
namespace {

constexpr const char* kLabExamples =
    R"(Each lab starts from zero: no files, no downloads, minutes on two cores. What would count as seen is fixed before
anything is measured: a rule holds if the whole 95 % interval over the seeds (Student's t) lies on its side. Seen: all
rules hold. Not seen: none does. Mixed: some do. Exit code 0 if seen, else 1.

Examples:
  qkv lab --list                         what there is, with its claim
  qkv lab causality                      the quickest: seconds
  qkv lab induction --seeds 5            more seeds, narrower intervals
  qkv lab one-head --out one-head.json   all numbers of all seeds
  qkv lab scale --html scale.html        one page: claim, rules, numbers, curves, conclusion
  qkv lab induction --device cuda --size 4   the long form, on a GPU: more steps, the same rules
  qkv lab all --json                     every lab, one report
  qkv lab all --html labs.html           every lab, one page)";

constexpr const char* kAllLabs = "all";
constexpr size_t kLongestDocument = size_t{1} << 20;

struct LabArguments {
  std::string name;
  ReportOptions report;
  int64_t seeds = 0, first_seed = 1;
  double size = 1;
  ComputeOptions compute;
  bool list = false, lines = false;
  std::string docs, html;
};

std::string duration(const Lab& lab) {
  const std::optional<double> seconds = recorded_seconds(lab);
  return seconds ? fmt::format("  about {:.0f} s on two cores", std::ceil(*seconds)) : "";
}

void list_labs() {
  for (const Lab* lab : all_labs()) {
    std::cout << inked(Ink::bold, lab->name) << duration(*lab) << '\n'
              << indented(lab->claim) << indented(lab->claim_zh) << '\n';
  }
}

void list_labs_json() {
  OrderedJson all = OrderedJson::array();
  for (const Lab* lab : all_labs()) {
    const std::optional<double> seconds = recorded_seconds(*lab);
    all.push_back({{"name", lab->name},
                   {"claim", lab->claim},
                   {"claim_zh", lab->claim_zh},
                   {"how", lab->how},
                   {"seconds_on_two_cores", seconds ? OrderedJson(*seconds) : OrderedJson(nullptr)}});
  }
  print_json(all);
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

// Shows a lab's claim, runs it and shows what was found.
LabResult run_and_show(const Lab& lab, const LabArguments& options, const Engine& engine) {
  const bool quiet = options.report.json || options.lines || options.html == "-";
  if (!quiet) {
    std::cout << inked(Ink::bold, lab.name) << duration(lab) << '\n'
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
         .size = options.size,
         .first_seed = static_cast<uint64_t>(options.first_seed),
         .stop = [&] { return interrupt.seen(); },
         .progress =
             [&](const LabProgress& now) { options.lines ? lines.tell(now) : progress.update(++told, now.text()); }},
        options.seeds > 0 ? options.seeds : lab.seeds);
  }
  if (result.each.empty()) {
    std::cerr << fmt::format("stopped after {:.0f} s, before the first seed was finished: nothing to say\n",
                             result.seconds);
  } else if (!quiet) {
    show_result(lab, result);
  }
  return result;
}

void write_page(const LabArguments& options, std::span<const OrderedJson> reports) {
  if (options.html.empty() || reports.empty()) return;
  CommandLine line("qkv lab");
  line.argument(options.name);
  if (options.seeds > 0) line.option("--seeds", std::to_string(options.seeds));
  if (options.first_seed != 1) line.option("--first-seed", std::to_string(options.first_seed));
  if (options.size != 1) line.option("--size", fmt::format("{}", options.size));
  if (options.compute.device_name != "auto") line.option("--device", options.compute.device_name);
  write_out(options.html, labs_html(reports, line.text()));
  if (options.html != "-") std::cerr << "wrote " << options.html << '\n';
}

// All of them, one after the other; what was finished is reported even if the rest was stopped.
void run_all_labs(const LabArguments& options, const Engine& engine) {
  QKV_CHECK(!options.lines, "--lines is for one lab but all were asked for", Hint("use --json, or name one lab"));
  std::vector<OrderedJson> reports;
  OrderedJson verdicts = OrderedJson::object();
  bool stopped = false, all_seen = true;
  for (const Lab* lab : all_labs()) {
    const LabResult result = run_and_show(*lab, options, engine);
    stopped = result.stopped;
    if (!result.each.empty()) {
      reports.push_back(lab_report(*lab, result, engine, options.size));
      verdicts[lab->name] = name_of(result.verdict);
      all_seen = all_seen && result.verdict == Verdict::seen;
    }
    if (stopped) break;
    if (!options.report.json && options.html != "-") std::cout << std::endl;
  }
  write_report(options.report, {{"stopped", stopped}, {"verdicts", verdicts}, {"labs", reports}});
  write_page(options, reports);
  if (stopped) throw Interrupted();
  if (!all_seen) throw AnswerNo();
}

void run_lab(const LabArguments& options) {
  if (options.list) return options.report.json ? list_labs_json() : list_labs();
  if (!options.docs.empty()) return write_out(options.docs, with_labs_table(read_text(options.docs, kLongestDocument)));
  QKV_CHECK(!options.name.empty(), "which lab?", Hint("qkv lab --list  shows them"));
  QKV_CHECK(options.html != "-" || !(options.report.json || options.lines), "--html - and ",
            options.lines ? "--lines" : "--json", " both go to standard output", Hint("give --html a file"));
  const Lab* lab = options.name == kAllLabs ? nullptr : &lab_named(options.name);
  QKV_CHECK(options.seeds == 0 || options.seeds >= Lab::kFewestSeeds, "--seeds is ", options.seeds, " but a lab needs ",
            Lab::kFewestSeeds, " at least", Hint("an interval over fewer says nothing; leave --seeds out"));
  QKV_CHECK(options.first_seed >= 1, "--first-seed is ", options.first_seed, " but seeds begin at 1",
            Hint("--first-seed 4 --seeds 3  takes the seeds 4, 5 and 6"));
  constexpr int64_t kNeeded = int64_t{2} << 30;  // more than any lab's model and batch take
  const Engine engine(kernels_for(options.compute, kNeeded), {.threads = options.compute.threads});
  if (lab == nullptr) return run_all_labs(options, engine);
  const LabResult result = run_and_show(*lab, options, engine);
  if (result.each.empty()) throw Interrupted();
  const OrderedJson report = lab_report(*lab, result, engine, options.size);
  if (options.lines) std::cout << report.dump() << std::endl;
  write_report(options.report, report);
  write_page(options, {&report, 1});
  if (result.stopped) throw Interrupted();
  if (result.verdict != Verdict::seen) throw AnswerNo();
}

}  // namespace

void add_lab(Command app) {
  const Command command = app.add_command("lab", "Run an experiment that can fail: induction, causality, ...");
  const auto options = std::make_shared<LabArguments>();  // lives as long as the callback
  std::vector<std::string> names;
  for (const Lab* lab : all_labs()) names.emplace_back(lab->name);
  names.emplace_back(kAllLabs);
  command.add_option("NAME", options->name, "Which lab, or all; --list shows them").known(names);
  command.add_flag("--list", options->list, "List the labs with their claims and how long they take");
  command.add_option("--docs", options->docs, "Write the table of what was recorded into this document");
  command.add_option("--seeds", options->seeds, "How many seeds, 3 or more; otherwise as many as the lab needs");
  command.add_option("--first-seed", options->first_seed,
                     "The first of them, 1 unless said otherwise: other seeds should give the same verdict");
  command.add_option("--size", options->size, "So many times as many steps and examples; the rules stay as they are")
      .between(1.0, 100.0);
  add_report_options(command, options->report);
  command.add_output_file("--html FILE", options->html, "Write one page that opens offline, in both languages");
  command
      .add_flag("--lines", options->lines,
                "Print lines of JSON and nothing else: what is being done as it goes, and the report at the end")
      .excludes(command.option("--json"));
  add_compute_options(command, options->compute);
  command.footer(kLabExamples);
  command.callback([options] { run_lab(*options); });
}

}  // namespace qkv::app

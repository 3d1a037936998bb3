// ./qkv bench ops: the limits of this machine and the hot ops as a share of them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/progress.h"
#include "command.h"
#include "kernels/tables.h"
#include "peer.h"
#include "random_model.h"
#include "report.h"

namespace {

constexpr double kRunSeconds = 80, kShortestRow = 0.5, kLongestRow = 6;  // time a fast row leaves goes to the next

constexpr const char* kExamples = R"(Examples:
  ./qkv bench ops                       everything, in about 80 seconds
  ./qkv bench ops --only "forward bf16" the rows whose op and dtype contain this text
  ./qkv bench ops --only none           only the limits
  ./qkv bench ops --threads 1 --json    one thread, as JSON
  ./qkv bench ops --device cuda         on an NVIDIA GPU
  QKV_ISA=avx2 ./qkv bench ops          with the kernels of another instruction set

Each round measures the limit, ours, and oneDNN and OpenBLAS (f32) on the same
data if they are installed. Other processes only make figures lower: read the
best, and compare only within one run.

Exit codes: 0 done, 2 the request is wrong, 3 a fault of qkv itself.)";

struct Wanted {
  std::string only, device = "cpu";
  int threads = 0;
  bool json = false;
};

bool may_colour() {
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

std::vector<qkv::bench::HotOp> chosen_ops(const qkv::Engine& engine, const std::string& only) {
  std::vector<qkv::bench::HotOp> ops = qkv::bench::hot_ops(engine);
  if (only == "none") return {};
  std::string known;
  for (const auto& op : ops) {
    if (known.find(op.name) == std::string::npos) known += (known.empty() ? "" : ", ") + op.name;
  }
  std::erase_if(ops, [&](const auto& op) { return op.title().find(only) == std::string::npos; });
  QKV_CHECK(!ops.empty(), "no op contains '", only, "'",
            qkv::Hint("these exist, each followed by f32 or bf16: ", known));
  return ops;
}

void bench(const Wanted& wanted) {
  const qkv::Engine engine(qkv::bench::kernels_of(wanted.device), {.threads = wanted.threads});
  std::vector<qkv::bench::HotOp> ops = chosen_ops(engine, wanted.only);
  if (qkv::bench::limits_of(engine) == qkv::bench::Limits::Of::gpu) {
    for (auto& op : ops) op.full *= op.full >= 4096 ? 8 : 1;  // what fills a GPU
  }
  for (const qkv::bench::Peer* peer : qkv::bench::peers()) peer->set_threads(engine.threads());

  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  qkv::Progress progress("bench ops", static_cast<int64_t>(ops.size()));
  progress.update(0, "limits");
  qkv::bench::Limits limits(*engine.exec().pool, qkv::bench::limits_of(engine));
  read_limits(limits);
  std::vector<qkv::bench::Row> rows;
  for (const auto& op : ops) {
    progress.update(static_cast<int64_t>(rows.size()), op.title());
    const double each = (kRunSeconds - elapsed()) / static_cast<double>(ops.size() - rows.size());
    rows.push_back(measure(op, limits, std::clamp(each, kShortestRow, kLongestRow)));
  }
  progress.update(static_cast<int64_t>(rows.size()));
  progress.finish();

  const qkv::bench::Report report{.machine = qkv::bench::this_machine(engine),
                                  .limits = limits,
                                  .rows = rows,
                                  .seconds = elapsed(),
                                  .preempted = qkv::bench::preemptions()};
  if (wanted.json) {
    print_json(std::cout, report);
  } else {
    print_table(std::cout, report, may_colour());
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Limits of this machine, and each hot op as a share of its limit", "qkv bench ops"};
  Wanted wanted;
  app.add_option("--only", wanted.only, "Only ops whose name and dtype contain this text; 'none' measures the limits");
  app.add_option("--threads", wanted.threads, "Number of threads; default: one per available CPU")
      ->check(CLI::Range(1, qkv::kMostThreads));
  qkv::bench::add_device_option(app, wanted.device);
  app.add_flag("--json", wanted.json, "Print JSON: machine, limits, rows, notes");
  app.footer(kExamples);
  return qkv::bench::run_command(app, argc, argv, [&] { bench(wanted); });
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv);
}

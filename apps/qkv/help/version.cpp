// qkv version: what this program was built from, and which kernels it uses on this machine.
#include "help/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>

#include "base/json.h"
#include "commit.h"
#include "common/commands.h"
#include "kernels/tables.h"

namespace qkv::app {
namespace {

void print_version(bool json) {
  std::vector<std::string> runs;
  for (const Kernels* table : kernels::cpu::tables()) runs.emplace_back(table->name);
  const std::string chosen = kernels::best_table().name;
  constexpr bool kMpi = QKV_MPI != 0;
  const char* why = nullptr;
  const bool gpu = kernels::cuda::available(&why);
  if (json) {
    const nlohmann::ordered_json out{{"version", QKV_VERSION},
                                     {"commit", QKV_COMMIT},
                                     {"kernels", chosen},
                                     {"kernels_usable", runs},
                                     {"kernels_built", QKV_KERNEL_TABLES},
                                     {"gpu", gpu ? Json(kernels::cuda::gpu_name()) : Json()},
                                     {"compiler", QKV_COMPILER},
                                     {"mpi", kMpi}};
    std::cout << json_text(out) << '\n';
    return;
  }
  std::cout << fmt::format(
      "qkv {}\ncommit    {}\nkernels   {} (this machine runs {}; built in: {})\nGPU       {}\ncompiler  {}\nMPI       "
      "{}\n",
      QKV_VERSION, QKV_COMMIT, chosen, fmt::join(runs, ", "), QKV_KERNEL_TABLES,
      gpu ? kernels::cuda::gpu_name() : fmt::format("none: {}", why), QKV_COMPILER, kMpi ? "yes" : "no");
}

}  // namespace

const char* built_from() {
  return QKV_COMMIT;
}

void add_version(Command app) {
  const Command command = app.add_command("version", "Print version, commit, kernels and compiler");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  command.footer("Examples:\n  qkv version\n  qkv version --json");
  command.callback([json] { print_version(*json); });
}

}  // namespace qkv::app

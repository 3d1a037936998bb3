#include "make/page_jobs.h"

#include <algorithm>
#include <filesystem>

#include "api/training/recipes.h"
#include "base/error.h"
#include "base/program_path.h"
#include "server/jobs/knobs.h"

namespace qkv::app {

server::JobOptions page_jobs(const ComputeOptions& compute, const std::string& runs) {
  const std::filesystem::path program = program_path();
  QKV_CHECK(!program.empty(),
            "trainings of the page are started with this program, but the system does not say where it is",
            Hint("mount /proc"));
  server::JobOptions options{.program = program.string(), .arguments = {"--device", compute.device_name}, .runs = runs};
  if (compute.threads > 0) {
    options.arguments.insert(options.arguments.end(), {"--threads", std::to_string(compute.threads)});
  }
  for (const auto& [name, text] : shipped_recipes()) {
    Json recipe = parse_json(text, name);
    recipe["name"] = name;  // what qkv train takes
    if (server::has_knobs(recipe)) options.recipes.push_back(std::move(recipe));
  }
  // The one that learns while one watches comes first.
  std::stable_partition(options.recipes.begin(), options.recipes.end(),
                        [](const Json& r) { return r["name"] == "demo"; });
  return options;
}

}  // namespace qkv::app

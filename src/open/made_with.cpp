#include "open/made_with.h"

#include <filesystem>

#include "open/builtin_models.h"

namespace qkv {

std::string model_argument(const std::string& path) {
  const auto normal = [](const std::filesystem::path& p) {
    const std::filesystem::path same = p.lexically_normal();
    return same.has_filename() ? same : same.parent_path();
  };
  for (const BuiltinModel& model : builtin_models()) {
    if (normal(path) == normal(model.folder())) return std::string(model.name);
  }
  return path;
}

CommandLine command_on(const OpenModel& opened, std::string_view command, const std::string& model) {
  CommandLine line(command);
  line.argument(model);
  if (opened.has_own_precision()) line.option("--dtype", name_of(opened.precision().compute));
  const kernels::DeviceChoice device = opened.options().device;
  if (device == kernels::DeviceChoice::cuda) line.option("--device", "cuda");
  if (device == kernels::DeviceChoice::cpu && kernels::cuda::available()) line.option("--device", "cpu");
  return line;
}

CommandLine command_on(const OpenModel& opened, std::string_view command) {
  return command_on(opened, command, model_argument(opened.path()));
}

}  // namespace qkv

#include "train/line_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool stays(std::string_view line, const fs::path& path, int64_t last_step) {
  try {
    const Json json = parse_json(line, path.string());
    return !json.is_object() || !json.contains("step") || !json["step"].is_number() ||
           json["step"].get<double>() <= static_cast<double>(last_step);
  } catch (const Error& e) {
    log_line(Log::warn, fmt::format("a line is dropped: {}", e.message()));  // a power cut leaves such
    return false;
  }
}

}  // namespace

void LineFile::append(const Json& line) {
  if (!file_) file_ = std::make_shared<AppendFile>(path_);
  // Texts a model made need not be UTF-8.
  file_->append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void LineFile::heal() {
  if (!fs::exists(path_)) return;
  const MappedFile mapped(path_);
  const size_t end = text_of(mapped).rfind('\n') + 1;  // none: 0
  if (end < mapped.bytes().size()) fs::resize_file(path_, end);
}

void LineFile::drop_after(int64_t step) {
  if (!fs::exists(path_)) return;
  file_.reset();
  const MappedFile mapped(path_);
  AtomicFile kept(path_);
  std::string_view rest = text_of(mapped);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!stays(line, path_, step)) continue;
    kept.write(std::as_bytes(std::span(line)));
    kept.write(std::as_bytes(std::span("\n", 1)));
  }
  kept.commit();
}

}  // namespace qkv

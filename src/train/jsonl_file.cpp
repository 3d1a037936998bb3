#include "train/jsonl_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

bool is_kept(std::string_view line, const fs::path& path, int64_t last_step) {
  try {
    const Json json = parse_json(line, path.string());
    return !json.is_object() || !json.contains("step") || !json["step"].is_number() ||
           json["step"].get<double>() <= static_cast<double>(last_step);
  } catch (const Error& e) {
    log_line(Log::warn, fmt::format("a line is dropped: {}", e.message()));  // possible after a power cut
    return false;
  }
}

}  // namespace

void JsonlFile::append(const Json& line) {
  if (!file_) file_ = std::make_shared<AppendFile>(path_);
  // Generated text may be invalid UTF-8.
  file_->append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonlFile::drop_partial_line() {
  if (!is_there(path_)) return;
  const MappedFile mapped(path_);
  const size_t end = text_of(mapped).rfind('\n') + 1;  // 0 if there is none
  if (end < mapped.bytes().size()) fs::resize_file(path_, end);
}

void JsonlFile::remove_after(int64_t step) {
  if (!is_there(path_)) return;
  file_.reset();
  drop_partial_line();
  const MappedFile mapped(path_);
  AtomicFile kept(path_);
  std::string_view rest = text_of(mapped);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!is_kept(line, path_, step)) continue;
    kept.write(std::as_bytes(std::span(line)));
    kept.write(std::as_bytes(std::span("\n", 1)));
  }
  kept.commit();
}

}  // namespace qkv

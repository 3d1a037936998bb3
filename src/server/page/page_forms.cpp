#include "server/page/page_forms.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/temporaries.h"
#include "model/quantized/quantized_model.h"
#include "model/quantized/quantized_names.h"

namespace qkv::server {
namespace {

constexpr size_t kMostForms = 2;

// Written beside other temporary files and mapped from there; the files are gone as soon as they are mapped.
std::unique_ptr<OpenModel> quantised(PageModel& model, const std::string& form, const OpenOptions& open) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const Temporary room(folder, Temporary::Kind::folder);
  QKV_CHECK(!room.path().empty(), folder, ": a folder for the quantised model cannot be made: ", std::strerror(errno),
            Hint("make room there, or set TMPDIR"));
  const Engine host(kernels::best_table(), {.threads = open.threads});
  const std::string to = room.path() + "/model";
  quantize_model(model.opened().checkpoint(), to, host, {.to = parse_panels(form + "/32", form)});
  return std::make_unique<OpenModel>(to, open);
}

}  // namespace

const OpenModel& PageForms::get(PageModel& model, const std::string& form) {
  if (form == "exact") return model.opened();
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return e.name == model.name() && e.form == form; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return *entries_.front().opened;
  }
  OpenOptions open = model.open_options();
  open.precision = form == "bf16" ? Precision::bf16() : model.precision();
  std::unique_ptr<OpenModel> made =
      form == "bf16" ? std::make_unique<OpenModel>(model.path(), open) : quantised(model, form, open);
  entries_.push_front({model.name(), form, std::move(made)});
  if (entries_.size() > kMostForms) entries_.pop_back();
  return *entries_.front().opened;
}

}  // namespace qkv::server

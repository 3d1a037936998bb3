#include "model/checkpoint/convert.h"

#include <algorithm>

#include "base/error.h"
#include "base/output_path.h"
#include "base/path.h"
#include "io/gguf.h"
#include "model/gguf/gguf_model.h"
#include "model/quantized/quantized_names.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

bool comes_along(const fs::path& file) {
  static constexpr std::string_view kNames[] = {"tokenizer.json",
                                                "tokenizer_config.json",
                                                "generation_config.json",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "merges.txt",
                                                "vocab.json",
                                                "vocab.txt",
                                                "chat_template.jinja"};
  const std::string name = file.filename().string();
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) || file.extension() == ".model" ||
         file.extension() == ".spm";
}

void check_dtype(const std::string& dtype, bool gguf) {
  const bool plain = dtype.empty() || dtype == "F32" || dtype == "BF16" || dtype == "F16";
  QKV_CHECK(plain || (gguf && dtype == "Q8_0"), "weights cannot be written as ", dtype,
            gguf ? " in GGUF" : " in a Hugging Face folder",
            Hint(gguf ? "F32, F16, BF16 and Q8_0 are possible" : "F32, BF16 and F16 are; blocks are for GGUF"));
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  return !folder.empty() && std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

void check_link_stays(const fs::path& folder, const fs::path& file) {
  std::error_code failed;
  if (!fs::is_symlink(file, failed)) return;
  const fs::path link = fs::read_symlink(file, failed), end = fs::canonical(file, failed);
  QKV_CHECK(!failed, file.string(), " is a link to ", link.string(), ": ", failed.message(),
            Hint("remove the link, or put the file in its place"));
  const fs::path here = fs::canonical(folder, failed);
  if (is_inside(end, here)) return;
  // The cache of Hugging Face: snapshots/REVISION/FILE -> ../../blobs/HASH
  for (fs::path at = here; at.has_relative_path(); at = at.parent_path()) {
    if (at.filename() == "snapshots" && is_inside(end, fs::canonical(at.parent_path() / "blobs", failed))) return;
  }
  QKV_FAIL(file.string(), " is a link to ", end.string(), ", which is outside of the model's folder and is not copied",
           Hint("put the file itself into the folder, or remove the link"));
}

std::vector<fs::path> companion_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : folder_entries(folder)) {
    if (!comes_along(entry)) continue;
    check_link_stays(folder, entry);
    if (is_file(entry)) files.push_back(entry);
  }
  return files;
}

std::vector<std::string> convert_model(const fs::path& from, const fs::path& to, const ConvertOptions& options) {
  const bool to_gguf = options.to == ConvertOptions::To::gguf ||
                       (options.to == ConvertOptions::To::by_name && to.extension() == ".gguf");
  check_dtype(options.dtype, to_gguf);
  to_gguf ? check_output_file(to, Existing::refused) : check_output_folder(to);
  const Checkpoint source = Checkpoint::open(from);
  const bool from_folder = is_folder(from);
  if (to_gguf && !from_folder) {
    rewrite_gguf(to, Gguf::open(from), options.dtype, options.progress);
    return {};
  }
  const Weights weights = source.weights(cpu_device());
  if (to_gguf) {
    GgufOutput output{.dtype = options.dtype.empty() ? stored_name(source.spec.dtype) : options.dtype,
                      .name = fs::absolute(from).lexically_normal().filename().string(),
                      .progress = options.progress};
    if (options.tokenizer_keys) {
      output.tokenizer = [&](GgufMetadata& out) { return options.tokenizer_keys(out, from, source.spec); };
    }
    return write_gguf_model(to, source.spec, weights, output);
  }
  std::vector<std::string> notes;
  std::map<std::string, std::string> made;
  if (!from_folder && options.tokenizer_files) notes = options.tokenizer_files(Gguf::open(from), made);
  // GGUF keeps norms in float32 beside smaller matrices; in a folder all have the config's dtype.
  const std::string dtype = from_folder || !options.dtype.empty() ? options.dtype : stored_name(source.spec.dtype);
  const bool own_names = from_folder && !is_quantized(source.config);
  write_hugging_face(to, source.config, weights, own_names ? *source.names : hugging_face_names(source.spec),
                     {.dtype = dtype,
                      .copied = from_folder ? companion_files(from) : std::vector<fs::path>{},
                      .made = std::move(made),
                      .progress = options.progress});
  if (is_quantized(source.config)) {
    notes.push_back("the weights are plain numbers again, but those that quantising left");
  }
  if (source.spec.heads_cut) {
    notes.push_back("heads are cut out of this model: qkv reads the folder, Hugging Face transformers cannot");
  }
  return notes;
}

}  // namespace qkv

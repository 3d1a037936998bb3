#include "model/checkpoint/checkpoint.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/path.h"
#include "base/printable.h"
#include "io/gguf.h"
#include "io/gguf_layout.h"
#include "io/safetensors_folder.h"
#include "io/stored_type.h"
#include "model/checkpoint/stored_weight.h"
#include "model/gguf/gguf_config.h"
#include "model/quantized/quantized_names.h"

namespace qkv {
namespace {

constexpr size_t kLargestConfig = 16 << 20;

bool starts_as_gguf(const std::filesystem::path& path) {
  const MappedFile file(path);  // refuses pipes
  const auto start = file.bytes().first(std::min(file.bytes().size(), gguf::kMagic.size()));
  return std::ranges::equal(start, std::as_bytes(std::span(gguf::kMagic)));
}

size_t missing(const TensorFile& file, const TensorNames& names) {
  return static_cast<size_t>(std::count_if(names.tensors().begin(), names.tensors().end(), [&](const NamedTensor& t) {
    return find_stored_weight(file, t.name).tensor == nullptr;
  }));
}

// The naming scheme the file uses.
std::shared_ptr<const TensorNames> names_in(const TensorFile& file, const ModelSpec& spec, const Family& family) {
  auto names = std::make_shared<TensorNames>(spec);
  family.names(*names);
  names->check_complete();
  const size_t lacks = missing(file, *names);
  if (lacks > 0 && family.names_otherwise != nullptr) {
    auto otherwise = std::make_shared<TensorNames>(spec);
    family.names_otherwise(*otherwise);
    otherwise->check_complete();
    if (missing(file, *otherwise) < lacks) return otherwise;
  }
  return names;
}

Json read_config(const std::filesystem::path& path) {
  return parse_json(read_file(path, kLargestConfig), path.filename().string());
}

}  // namespace

void check_tensors(const TensorFile& file, const TensorNames& names, Extras extras) {
  std::set<std::string_view> used;
  for (const NamedTensor& named : names.tensors()) {
    const StoredWeight s = find_stored_weight(file, named.name);
    if (s.tensor == nullptr) {
      std::vector<std::string_view> known;
      for (const StoredTensor& entry : file.entries()) known.push_back(entry.name);
      const std::string near = nearest_key(named.name, known);
      QKV_FAIL(file.name(), ": has no tensor ", printable(named.name), ", which a ", names.spec().family,
               " of this config needs (", missing(file, names), " of ", names.tensors().size(), " are missing)",
               near.empty()
                   ? Hint("the config belongs to another model, or a shard is missing")
                   : Hint("it has ", printable(near), "; the config belongs to another model, or a shard is missing"));
    }
    check_stored_weight(file, named, s);
    used.insert(s.tensor->name);
    if (s.scales != nullptr) used.insert(s.scales->name);
  }
  if (extras == Extras::allowed) return;
  std::vector<const StoredTensor*> extra;
  for (const StoredTensor& entry : file.entries()) {
    if (!used.contains(entry.name) && !names.ignores(entry.name)) extra.push_back(&entry);
  }
  QKV_CHECK(extra.empty(), file.name(), ": holds ", extra.size(),
            " tensors that the config does not speak of, the first is ", printable(extra.front()->name), " ",
            shape_text(extra.front()->shape),
            Hint("the config belongs to another model: more layers, biases or experts than it says"));
}

Checkpoint Checkpoint::open(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  Checkpoint made;
  if (is_folder(path)) {
    const fs::path config = path / "config.json";
    QKV_CHECK(is_there(config), path.string(), ": has no config.json",
              Hint("a model is a folder with config.json and model.safetensors, or a .gguf file"));
    made.config = read_config(config);
    made.spec = read_spec(Config(made.config, "config.json"));
    made.file = std::make_shared<TensorFileOf<SafetensorsFolder>>(SafetensorsFolder::open(path));
    made.names = is_quantized(made.config)
                     ? std::make_shared<TensorNames>(quantized_names(made.spec, made.config, "config.json"))
                     : names_in(*made.file, made.spec, family_of(made.spec.family, "config.json"));
  } else {
    QKV_CHECK(is_there(path), path.string(), ": there is no such file or folder",
              Hint("a model is a folder with config.json and model.safetensors, or a .gguf file"));
    QKV_CHECK(path.extension() == ".gguf" || starts_as_gguf(path), path.string(), ": is not a GGUF file",
              Hint("a model is a folder with config.json and model.safetensors, or a .gguf file"));
    const Gguf gguf = Gguf::open(path);
    made.config = config_of(gguf);
    made.spec = read_spec(Config(made.config, gguf.name()));
    made.file = std::make_shared<TensorFileOf<Gguf>>(gguf);
    const bool apart = gguf.find("blk.0.ffn_gate.0.weight") != nullptr;
    made.names =
        std::make_shared<TensorNames>(gguf_names(made.spec, apart ? ExpertTensors::apart : ExpertTensors::one));
  }
  check_tensors(*made.file, *made.names, Extras::refused);
  return made;
}

const char* stored_name(DType dtype) {
  return dtype == DType::f32 ? "F32" : dtype == DType::bf16 ? "BF16" : "F16";
}

TensorNames hugging_face_names(const ModelSpec& spec) {
  TensorNames names(spec);
  family_of(spec.family, "config.json").names(names);
  names.check_complete();
  return names;
}

}  // namespace qkv

#include "model/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/printable.h"
#include "io/floats.h"
#include "io/safetensors_folder.h"
#include "io/stored_type.h"
#include "model/tensor_layout.h"

namespace qkv {
namespace {

constexpr size_t kLargestConfig = 16 << 20;

std::optional<DType> plain_dtype(std::string_view stored) {
  if (stored == "F32") return DType::f32;
  if (stored == "BF16") return DType::bf16;
  if (stored == "F16") return DType::f16;
  return std::nullopt;
}

// --- what stands for a tensor in the file ---------------------------------------------------------------------------

// The tensor itself, or what 4-bit and 8-bit checkpoints have in its place.
struct Standing {
  const StoredTensor* tensor = nullptr;  // plain numbers or blocks
  const StoredTensor* scales = nullptr;  // 8-bit floats: one scale to a tile; 4-bit: one to a block
  bool pairs = false;                    // 4-bit, `tensor` holds the blocks
};

Standing standing_for(const TensorFile& file, const std::string& name) {
  if (const StoredTensor* tensor = file.find(name)) {
    const bool eight = tensor->dtype.starts_with("F8_");
    return {.tensor = tensor, .scales = eight ? file.find(name + "_scale_inv") : nullptr};
  }
  const StoredTensor *blocks = file.find(name + "_blocks"), *scales = file.find(name + "_scales");
  if (blocks != nullptr && scales != nullptr) return {.tensor = blocks, .scales = scales, .pairs = true};
  return {};
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  const StoredType* type = find_stored_type(tensor.dtype);
  QKV_ASSERT(type != nullptr, "tensor '", tensor.name, "' has an unknown type ", tensor.dtype);
  int64_t count = 1;
  for (const int64_t d : tensor.shape) count *= d;
  std::vector<float> values(static_cast<size_t>(count));
  decode_floats(tensor.dtype, tensor.bytes, values);
  return values;
}

// The whole tensor as floats, in the order of the file.
std::vector<float> floats_of(const Standing& s) {
  if (s.scales == nullptr) return floats_of(*s.tensor);
  if (s.pairs) {
    std::vector<float> values(s.tensor->bytes.size() * 2);
    decode_mxfp4_pairs(s.tensor->bytes, s.scales->bytes, values);
    return values;
  }
  const int64_t rows = s.tensor->shape[0], columns = s.tensor->shape[1];
  std::vector<float> values(static_cast<size_t>(rows * columns));
  const std::vector<float> scale = floats_of(*s.scales);
  decode_tiled_float8(
      {.dtype = s.tensor->dtype, .weight = s.tensor->bytes, .scale = scale, .rows = rows, .columns = columns}, values);
  return values;
}

void fail_shape(const TensorFile& file, const StoredTensor& tensor, const std::vector<int64_t>& wanted) {
  QKV_FAIL(file.name(), ": tensor ", printable(tensor.name), " is ", shape_text(tensor.shape), " but the config says ",
           shape_text(wanted), Hint("the config belongs to another model, or the file mixes two"));
}

void check_standing(const TensorFile& file, const NamedTensor& named, const Standing& s) {
  if (s.pairs) {
    // [.., O, K] in blocks of 32 along K, 16 bytes each
    std::vector<int64_t> wanted = named.shape;
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
    QKV_CHECK(wanted.back() % 32 == 0, file.name(), ": tensor ", printable(s.tensor->name),
              " holds blocks of 32 but a row has ", wanted.back(), " numbers",
              Hint("the config belongs to another model"));
    wanted.back() /= 32;
    if (s.scales->shape != wanted) fail_shape(file, *s.scales, wanted);
    wanted.push_back(16);
    if (s.tensor->shape != wanted) fail_shape(file, *s.tensor, wanted);
    for (const StoredTensor* t : {s.tensor, s.scales}) {
      QKV_CHECK(t->dtype == "U8", file.name(), ": tensor ", printable(t->name), " is ", t->dtype,
                " but 4-bit weights are U8", Hint("the file is damaged or of another format"));
    }
    return;
  }
  QKV_CHECK(decodes_to_floats(s.tensor->dtype), file.name(), ": tensor ", printable(s.tensor->name), " is ",
            s.tensor->dtype, " but weights are floats: F32, F16, BF16, 8-bit floats or blocks",
            Hint("this is no weight, or the file is of a format that is not known"));
  if (s.tensor->shape != named.shape) fail_shape(file, *s.tensor, named.shape);
  if (s.scales != nullptr) {
    const auto tiles = [](int64_t n) { return (n + 127) / 128; };
    QKV_CHECK(named.shape.size() == 2 && named.layout == NamedTensor::Layout::plain, file.name(), ": tensor ",
              printable(s.tensor->name), " is in 8-bit floats with scales, which only plain matrices can be",
              Hint("the file is of a format that is not known"));
    const std::vector<int64_t> wanted{tiles(named.shape[0]), tiles(named.shape[1])};
    if (s.scales->shape != wanted) fail_shape(file, *s.scales, wanted);
  }
}

// --- from tensors to weights ----------------------------------------------------------------------------------------

struct Piece {
  const NamedTensor* tensor;
  size_t part;
};

// Writes one weight's numbers from the tensors that hold them.
void fill_weight(const Tensor& to, const std::vector<Piece>& pieces, const TensorFile& file, const TensorNames& names) {
  const int64_t size = size_of(to.dtype());
  std::vector<std::byte> host(static_cast<size_t>(to.count() * size));
  for (const Piece& piece : pieces) {
    const Standing s = standing_for(file, piece.tensor->name);
    const PartLayout layout(*piece.tensor, piece.part, names, s.pairs);
    const auto part = std::span(host).subspan(static_cast<size_t>(layout.first() * size),
                                              static_cast<size_t>(layout.dims().count() * size));
    if (plain_dtype(s.tensor->dtype) == to.dtype()) {
      layout.read(part, s.tensor->bytes, size);
    } else {
      const std::vector<float> values = floats_of(s);
      std::vector<std::byte> rounded(values.size() * static_cast<size_t>(size));
      encode_floats(to.dtype() == DType::f32 ? "F32" : to.dtype() == DType::bf16 ? "BF16" : "F16", values, rounded);
      layout.read(part, rounded, size);
    }
    file.release(*s.tensor);
  }
  to.device().upload(to.data(), host.data(), static_cast<int64_t>(host.size()));
}

// The dtype a weight has in memory: its own if the file holds plain numbers, else what the config says.
DType weight_dtype(const std::vector<Piece>& pieces, const TensorFile& file, DType otherwise) {
  std::optional<DType> common;
  for (const Piece& piece : pieces) {
    const std::optional<DType> own = plain_dtype(standing_for(file, piece.tensor->name).tensor->dtype);
    if (!own || (common && common != own)) return otherwise == DType::bf16 ? DType::bf16 : DType::f32;
    common = own;
  }
  return *common;
}

ParamSource source_of(const std::vector<Piece>& pieces, const Checkpoint& checkpoint, DType dtype) {
  const auto& [tensor, part] = pieces.front();
  const Standing s = standing_for(*checkpoint.file, tensor->name);
  const int64_t at = PartLayout(*tensor, part, *checkpoint.names).contiguous_at();
  const bool alone = pieces.size() == 1 && tensor->parts[part].expert < 0;
  if (alone && at >= 0 && plain_dtype(s.tensor->dtype) == dtype) {
    const std::byte* start = s.tensor->bytes.data() + at * size_of(dtype);
    if (reinterpret_cast<uintptr_t>(start) % static_cast<uintptr_t>(size_of(dtype)) == 0) {
      return {.in_place = const_cast<std::byte*>(start),  // read only: Param::writable makes a copy first
              .owner = checkpoint.file,
              .release = [file = checkpoint.file, entry = s.tensor] { file->release(*entry); }};
    }
  }
  return {.fill = [pieces, file = checkpoint.file, names = checkpoint.names](const Tensor& to) {
    fill_weight(to, pieces, *file, *names);
  }};
}

// --- opening ---------------------------------------------------------------------------------------------------------

size_t missing(const TensorFile& file, const TensorNames& names) {
  return static_cast<size_t>(std::count_if(names.tensors().begin(), names.tensors().end(), [&](const NamedTensor& t) {
    return standing_for(file, t.name).tensor == nullptr;
  }));
}

// The spelling the file comes in.
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

void check_tensors(const TensorFile& file, const TensorNames& names, const std::string& family) {
  std::set<std::string_view> used;
  for (const NamedTensor& named : names.tensors()) {
    const Standing s = standing_for(file, named.name);
    if (s.tensor == nullptr) {
      std::vector<std::string_view> known;
      for (const StoredTensor& entry : file.entries()) known.push_back(entry.name);
      const std::string near = nearest_key(named.name, known);
      QKV_FAIL(file.name(), ": has no tensor ", printable(named.name), ", which a model of the family ", family,
               " needs (", missing(file, names), " of ", names.tensors().size(), " are missing)",
               near.empty()
                   ? Hint("the config belongs to another model, or a shard is missing")
                   : Hint("it has ", printable(near), "; the config belongs to another model, or a shard is missing"));
    }
    check_standing(file, named, s);
    used.insert(s.tensor->name);
    if (s.scales != nullptr) used.insert(s.scales->name);
  }
  std::vector<const StoredTensor*> extra;
  for (const StoredTensor& entry : file.entries()) {
    if (!used.contains(entry.name) && !names.ignores(entry.name)) extra.push_back(&entry);
  }
  QKV_CHECK(extra.empty(), file.name(), ": holds ", extra.size(),
            " tensors that the config does not speak of, the first is ", printable(extra.front()->name), " ",
            shape_text(extra.front()->shape),
            Hint("the config belongs to another model: more layers, biases or experts than it says"));
}

Json read_config(const std::filesystem::path& path) {
  return parse_json(read_file(path, kLargestConfig), path.filename().string());
}

}  // namespace

Checkpoint Checkpoint::open(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  Checkpoint made;
  if (fs::is_directory(path, ignored)) {
    const fs::path config = path / "config.json";
    QKV_CHECK(fs::exists(config, ignored), path.string(), ": has no config.json",
              Hint("a model is a folder with config.json and model.safetensors, or a .gguf file"));
    made.config = read_config(config);
    made.spec = read_spec(Config(made.config, "config.json"));
    made.file = std::make_shared<TensorFileOf<SafetensorsFolder>>(SafetensorsFolder::open(path));
    made.names = names_in(*made.file, made.spec, family_of(made.spec.family, "config.json"));
  } else {
    QKV_CHECK(fs::exists(path, ignored), path.string(), ": there is no such file or folder",
              Hint("a model is a folder with config.json and model.safetensors, or a .gguf file"));
    QKV_FAIL(path.string(), ": is a file, but a model is a folder", Hint("name the folder that holds config.json"));
  }
  check_tensors(*made.file, *made.names, made.spec.family);
  return made;
}

Weights Checkpoint::weights(Device& device) const {
  std::map<std::string_view, std::vector<Piece>> pieces;
  for (const NamedTensor& tensor : names->tensors()) {
    for (size_t p = 0; p < tensor.parts.size(); ++p) pieces[tensor.parts[p].weight].push_back({&tensor, p});
  }
  Weights weights;
  for (const WeightSpec& weight : weight_list(spec)) {
    const std::vector<Piece>& of_weight = pieces.at(weight.name);
    const DType dtype = weight_dtype(of_weight, *file, spec.dtype);
    weights.add(Param(weight.name, device, dtype, weight.shape, source_of(of_weight, *this, dtype)));
  }
  return weights;
}

TensorNames hugging_face_names(const ModelSpec& spec) {
  TensorNames names(spec);
  family_of(spec.family, "config.json").names(names);
  names.check_complete();
  return names;
}

// --- out -------------------------------------------------------------------------------------------------------------

namespace {

const char* stored_name(DType dtype) {
  return dtype == DType::f32 ? "F32" : dtype == DType::bf16 ? "BF16" : "F16";
}

// Some of a weight's numbers on the host, in its own dtype.
std::vector<std::byte> host_bytes(const Param& weight, int64_t first, int64_t count) {
  const int64_t size = size_of(weight.format().dtype);
  std::vector<std::byte> host(static_cast<size_t>(count * size));
  const Tensor master = weight.master();
  master.device().download(host.data(), master.data() + first * size, count * size);
  return host;
}

std::vector<std::byte> converted(std::vector<std::byte> bytes, const std::string& from, const std::string& to) {
  if (from == to) return bytes;
  std::vector<float> values(bytes.size() / (from == "F32" ? 4 : 2));
  decode_floats(from, bytes, values);
  std::vector<std::byte> out(values.size() * (to == "F32" ? 4 : 2));
  encode_floats(to, values, out);
  return out;
}

}  // namespace

std::vector<OutgoingTensor> outgoing_tensors(const Weights& weights, const TensorNames& names,
                                             const std::string& dtype) {
  std::vector<OutgoingTensor> list;
  for (const NamedTensor& tensor : names.tensors()) {
    const std::string own = stored_name(weights.at(tensor.parts.front().weight).format().dtype);
    const std::string to = dtype.empty() ? own : dtype;
    list.push_back({.name = tensor.name,
                    .dtype = to,
                    .shape = tensor.shape,
                    .give = [&weights, &names, &tensor, to](ByteSink sink) {
                      const int64_t size = to == "F32" ? 4 : 2;
                      std::vector<std::byte> whole;
                      for (size_t p = 0; p < tensor.parts.size(); ++p) {
                        const PartLayout layout(tensor, p, names);
                        const Param& weight = weights.at(tensor.parts[p].weight);
                        const std::vector<std::byte> part =
                            converted(host_bytes(weight, layout.first(), layout.dims().count()),
                                      stored_name(weight.format().dtype), to);
                        whole.resize(static_cast<size_t>(layout.tensor_count() * size));
                        layout.write(whole, part, size);
                        if (layout.first() + layout.dims().count() == weight.shape().count()) weight.give_back();
                      }
                      sink(whole);
                    }});
  }
  return list;
}

namespace {

// Better said now than after an hour of writing.
void check_room_for(const std::filesystem::path& folder, int64_t bytes) {
  std::error_code unknown;
  const auto disk = std::filesystem::space(folder.has_parent_path() ? folder.parent_path() : ".", unknown);
  QKV_CHECK(unknown || disk.available >= static_cast<uint64_t>(bytes), folder.string(), ": needs ", bytes,
            " bytes but the disk has ", disk.available, " free", Hint("make room, or choose another disk or dtype"));
}

}  // namespace

void write_hugging_face(const std::filesystem::path& folder, const Json& config, std::vector<OutgoingTensor> tensors,
                        const std::string& dtype, const WrittenSoFar& progress) {
  Json out = config;
  if (!dtype.empty()) {
    out.erase("torch_dtype");
    out["dtype"] = dtype == "F32" ? "float32" : dtype == "BF16" ? "bfloat16" : "float16";
  }
  int64_t total = 0, done = 0;
  for (const OutgoingTensor& tensor : tensors) {
    total += static_cast<int64_t>(safetensors_bytes(tensor, folder.string()));
  }
  check_room_for(folder, total);
  for (OutgoingTensor& tensor : tensors) {
    tensor.give = [give = std::move(tensor.give), total, &done, &progress](ByteSink sink) {
      give([&](std::span<const std::byte> bytes) {
        sink(bytes);
        done += static_cast<int64_t>(bytes.size());
        if (progress) progress(done, total);
      });
    };
  }
  AtomicFolder target(folder);
  write_safetensors_folder(target.path(), tensors, {{"format", "pt"}});
  const std::string text = out.dump(2) + "\n";
  write_file_atomic(target.path() / "config.json", std::as_bytes(std::span(text)));
  target.commit();
}

void write_hugging_face(const std::filesystem::path& folder, const Json& config, const Weights& weights,
                        const TensorNames& names, const std::string& dtype, const WrittenSoFar& progress) {
  write_hugging_face(folder, config, outgoing_tensors(weights, names, dtype), dtype, progress);
}

}  // namespace qkv

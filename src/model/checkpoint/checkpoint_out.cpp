#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "io/floats.h"
#include "io/safetensors_folder.h"
#include "io/stored_type.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/tensor_layout.h"
#include "model/quantized/quantized_names.h"

namespace qkv {
namespace {

constexpr size_t kLargestCopied = size_t{1} << 30;
constexpr int64_t kPiece = 1 << 20;  // numbers written at a time; whole blocks of every type

// Some of a weight's numbers on the host, in its own dtype.
std::vector<std::byte> host_bytes(const Param& weight, int64_t first, int64_t count) {
  const int64_t size = size_of(weight.format().dtype);
  std::vector<std::byte> host(static_cast<size_t>(count * size));
  const Tensor master = weight.master();
  master.device().download(host.data(), master.data() + first * size, count * size);
  return host;
}

std::vector<float> host_floats(const Param& weight, int64_t first, int64_t count, double shift) {
  const std::vector<std::byte> bytes = host_bytes(weight, first, count);
  std::vector<float> values(static_cast<size_t>(count));
  decode_floats(stored_name(weight.format().dtype), bytes, values);
  if (shift != 0) {
    for (float& value : values) value += static_cast<float>(shift);
  }
  return values;
}

std::vector<std::byte> encoded(std::span<const float> values, const std::string& dtype) {
  const StoredType* type = find_stored_type(dtype);
  QKV_ASSERT(type != nullptr && encodes_floats(dtype), "weights cannot be written as ", dtype);
  std::vector<std::byte> bytes(values.size() / type->elements * type->bits / 8);
  encode_floats(dtype, values, bytes);
  return bytes;
}

// One tensor of the file from the weights it holds.
struct Giving {
  const Weights& weights;
  const TensorNames& names;
  const NamedTensor& tensor;
  std::string dtype;

  const Param& weight(size_t part) const { return weights.at(tensor.parts[part].weight); }
  bool as_it_is(size_t part) const { return tensor.shift == 0 && dtype == stored_name(weight(part).format().dtype); }
  void done_with(size_t part, const PartLayout& layout) const {
    const Param& w = weight(part);
    if (layout.first() + layout.dims().count() == w.shape().count()) w.release_master();
  }

  void give(ByteSink sink) const {
    const PartLayout only(tensor, 0, names);
    if (tensor.parts.size() == 1 && only.contiguous_at() == 0) {
      piece_by_piece(only, sink);
    } else {
      at_once(sink);
    }
  }

  // File and weight have the same layout.
  void piece_by_piece(const PartLayout& layout, ByteSink sink) const {
    const int64_t count = layout.dims().count();
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t piece = std::min(kPiece, count - at), first = layout.first() + at;
      sink(as_it_is(0) ? host_bytes(weight(0), first, piece)
                       : encoded(host_floats(weight(0), first, piece, tensor.shift), dtype));
    }
    done_with(0, layout);
  }

  void at_once(ByteSink sink) const {
    bool all_as_they_are = true;
    for (size_t p = 0; p < tensor.parts.size(); ++p) all_as_they_are &= as_it_is(p);
    const int64_t size = all_as_they_are ? size_of(weight(0).format().dtype) : 4;
    std::vector<std::byte> whole;
    for (size_t p = 0; p < tensor.parts.size(); ++p) {
      const PartLayout layout(tensor, p, names);
      const int64_t count = layout.dims().count();
      whole.resize(static_cast<size_t>(layout.tensor_count() * size));
      if (all_as_they_are) {
        layout.write(whole, host_bytes(weight(p), layout.first(), count), size);
      } else {
        const std::vector<float> part = host_floats(weight(p), layout.first(), count, tensor.shift);
        layout.write(whole, std::as_bytes(std::span(part)), size);
      }
      done_with(p, layout);
    }
    if (all_as_they_are) return sink(whole);
    const std::span values(reinterpret_cast<const float*>(whole.data()), whole.size() / sizeof(float));
    for (size_t at = 0; at < values.size(); at += kPiece) {
      sink(encoded(values.subspan(at, std::min<size_t>(kPiece, values.size() - at)), dtype));
    }
  }
};

}  // namespace

std::vector<OutgoingTensor> outgoing_tensors(const Weights& weights, const TensorNames& names,
                                             const StoredAs& stored_as) {
  std::vector<OutgoingTensor> list;
  for (const NamedTensor& tensor : names.tensors()) {
    const std::string own = stored_name(weights.at(tensor.parts.front().weight).format().dtype);
    const Giving giving{weights, names, tensor, stored_as(tensor, own)};
    list.push_back({.name = tensor.name, .dtype = giving.dtype, .shape = tensor.shape, .give = [giving](ByteSink sink) {
                      giving.give(sink);
                    }});
  }
  return list;
}

namespace {

int64_t bytes_of(const std::vector<OutgoingTensor>& tensors) {
  CheckedU64 total(0, "size of the model");
  for (const OutgoingTensor& tensor : tensors) {
    total = total + CheckedU64(stored_bytes(*find_stored_type(tensor.dtype), tensor.shape, tensor.name), tensor.name);
  }
  return total.as<int64_t>();
}

// Checked now, not after an hour of writing.
void check_room_for(const std::filesystem::path& folder, const AtomicFolder& made, int64_t bytes) {
  std::error_code unknown;
  const auto disk = std::filesystem::space(made.path(), unknown);
  QKV_CHECK(unknown || disk.available >= static_cast<uint64_t>(bytes), folder.string(), ": needs ", bytes,
            " bytes but the disk has ", disk.available, " free", Hint("make room, or choose another disk or dtype"));
}

}  // namespace

std::vector<OutgoingTensor> counted(std::vector<OutgoingTensor> tensors, const WriteProgress& progress) {
  if (!progress) return tensors;
  const int64_t total = bytes_of(tensors);
  auto done = std::make_shared<int64_t>(0);
  for (OutgoingTensor& tensor : tensors) {
    tensor.give = [give = std::move(tensor.give), done, total, progress](ByteSink sink) {
      give([&](std::span<const std::byte> bytes) {
        sink(bytes);
        *done += static_cast<int64_t>(bytes.size());
        progress(*done, total);
      });
    };
  }
  return tensors;
}

void write_model_folder(const std::filesystem::path& folder, ModelFolder content) {
  const ShardOptions aligned{.largest_shard = UINT64_MAX, .alignment = Device::kAlignment};
  AtomicFolder target(folder);
  check_room_for(folder, target, bytes_of(content.tensors));
  write_safetensors_folder(target.path(), counted(std::move(content.tensors), content.progress), {{"format", "pt"}},
                           content.cache_aligned ? aligned : ShardOptions{});
  const std::string text = content.config.dump(2) + "\n";
  write_file_atomic(target.path() / "config.json", std::as_bytes(std::span(text)));
  for (const auto& [name, made] : content.made) {
    write_file_atomic(target.path() / name, std::as_bytes(std::span(made)));
  }
  for (const std::filesystem::path& file : content.copied) {
    const std::string bytes = read_file(file, kLargestCopied);
    write_file_atomic(target.path() / file.filename(), std::as_bytes(std::span(bytes)));
  }
  target.commit();
}

void write_hugging_face(const std::filesystem::path& folder, const Json& config, std::vector<OutgoingTensor> tensors,
                        const HuggingFaceOutput& output) {
  Json out = config;
  out.erase(kNormOffsetKey);  // the tensor names imply how norms are stored
  if (is_quantized(out)) out.erase(kQuantizationKey);
  if (!output.dtype.empty()) {
    out.erase("torch_dtype");
    out["dtype"] = output.dtype == "F32" ? "float32" : output.dtype == "BF16" ? "bfloat16" : "float16";
  }
  write_model_folder(folder, {.config = std::move(out),
                              .tensors = std::move(tensors),
                              .copied = output.copied,
                              .made = output.made,
                              .progress = output.progress});
}

void write_hugging_face(const std::filesystem::path& folder, const Json& config, const Weights& weights,
                        const TensorNames& names, const HuggingFaceOutput& output) {
  const auto stored_as = [&](const NamedTensor&, const std::string& own) {
    return output.dtype.empty() ? own : output.dtype;
  };
  write_hugging_face(folder, config, outgoing_tensors(weights, names, stored_as), output);
}

}  // namespace qkv

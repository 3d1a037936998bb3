// Loads weights from the tensors of a file.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "core/panels.h"
#include "io/floats.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/stored_weight.h"
#include "model/checkpoint/tensor_layout.h"

namespace qkv {
namespace {

struct Piece {
  const NamedTensor* tensor;
  size_t part;
};

// The numbers of q8 or q4 panels.
std::vector<float> panel_floats(std::span<const std::byte> bytes, Format format, const MatrixDims& dims) {
  const PanelLayout layout(format, dims.inputs);
  const int64_t panels = (dims.outputs + kPanelRows - 1) / kPanelRows;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(dims.count()));
  for (int64_t m = 0; m < dims.matrices; ++m) {
    for (int64_t o = 0; o < dims.outputs; ++o) {
      const std::byte* panel = bytes.data() + (m * panels + o / kPanelRows) * layout.bytes();
      for (int64_t k = 0; k < dims.inputs; ++k) {
        values.push_back(static_cast<float>(layout.value(panel, o % kPanelRows, k)) *
                         layout.scale(panel, o % kPanelRows, k / layout.group()));
      }
    }
  }
  return values;
}

// The bytes of a weight within a part of a tensor.
std::span<std::byte> part_of(std::span<std::byte> weight, const PartLayout& layout, int64_t size) {
  return weight.subspan(static_cast<size_t>(layout.first() * size), static_cast<size_t>(layout.dims().count() * size));
}

// Copies rows of blocks unchanged, in the order of the weight.
void copy_blocks(std::span<std::byte> host, Format format, const Piece& piece, const StoredTensor& stored,
                 const TensorNames& names) {
  const PartLayout layout = PartLayout(*piece.tensor, piece.part, names).in_blocks(format.block_elements());
  layout.read(part_of(host, layout, format.block_bytes()), stored.bytes, format.block_bytes());
}

void copy_numbers(std::span<std::byte> host, DType dtype, const Piece& piece, const StoredWeight& s,
                  const TensorNames& names) {
  const int64_t size = size_of(dtype);
  const PartLayout layout(*piece.tensor, piece.part, names, s.pairs);
  const auto part = part_of(host, layout, size);
  if (s.plain() == dtype) {
    layout.read(part, s.tensor->bytes, size);
  } else {
    const Format panels = piece.tensor->panels;
    const std::vector<float> values =
        panels.plain() ? s.floats() : panel_floats(s.tensor->bytes, panels, layout.dims());
    if (dtype == DType::f32) {
      layout.read(part, std::as_bytes(std::span(values)), size);
    } else {
      std::vector<std::byte> rounded(values.size() * static_cast<size_t>(size));
      encode_floats(stored_name(dtype), values, rounded);
      layout.read(part, rounded, size);
    }
  }
  if (piece.tensor->shift != 0) {
    std::vector<float> values(static_cast<size_t>(layout.dims().count()));
    decode_floats(stored_name(dtype), part, values);
    for (float& value : values) value -= static_cast<float>(piece.tensor->shift);
    encode_floats(stored_name(dtype), values, part);
  }
}

// Fills a weight from the tensors that hold it.
void fill_weight(const Tensor& to, const std::vector<Piece>& pieces, const TensorFile& file, const TensorNames& names) {
  const Format format = to.format();
  std::vector<std::byte> host(static_cast<size_t>(format.bytes_for(to.shape())));
  for (const Piece& piece : pieces) {
    const StoredWeight s = find_stored_weight(file, piece.tensor->name);
    if (format.plain()) {
      copy_numbers(host, format.dtype, piece, s, names);
    } else if (format.panels()) {
      std::ranges::copy(s.tensor->bytes, host.begin());  // panels are always one whole tensor
    } else {
      copy_blocks(host, format, piece, *s.tensor, names);
    }
    file.release(*s.tensor);
  }
  to.device().upload(to.data(), host.data(), static_cast<int64_t>(host.size()));
}

// The dtype of a plain weight in memory: the file's if that is plain, else the config's.
DType weight_dtype(const std::vector<Piece>& pieces, const TensorFile& file, DType otherwise) {
  std::optional<DType> common;
  for (const Piece& piece : pieces) {
    const std::optional<DType> own = find_stored_weight(file, piece.tensor->name).plain();
    if (!own || (common && common != own)) return otherwise == DType::bf16 ? DType::bf16 : DType::f32;
    common = own;
  }
  return *common;
}

// The block format a weight can stay in: all its rows are stored as whole blocks of one kind.
std::optional<Format> block_format(const WeightSpec& weight, const std::vector<Piece>& pieces, const TensorFile& file) {
  if (!read_by_products(weight)) return std::nullopt;
  if (const Format panels = pieces.front().tensor->panels; !panels.plain()) return panels;
  const Block block = find_stored_weight(file, pieces.front().tensor->name).block();
  if (block == Block::none || weight.shape[-1] % elements_of(block) != 0) return std::nullopt;
  for (const auto& [tensor, part] : pieces) {
    using Layout = NamedTensor::Layout;
    const bool rows_whole = tensor->layout != Layout::transposed && tensor->layout != Layout::interleaved;
    if (!rows_whole || tensor->shift != 0 || find_stored_weight(file, tensor->name).block() != block)
      return std::nullopt;
  }
  return Format(block);
}

// Bytes of the file that are the weight's own are used in place on the host, and go to another device as they are.
ParamSource source_of(const std::vector<Piece>& pieces, const Checkpoint& checkpoint, Format format,
                      const Device& device) {
  const auto& [tensor, part] = pieces.front();
  const StoredWeight s = find_stored_weight(*checkpoint.file, tensor->name);
  const int64_t at = PartLayout(*tensor, part, *checkpoint.names).contiguous_at();
  const bool alone = pieces.size() == 1 && tensor->parts[part].expert < 0;
  const bool same = format.plain() ? s.plain() == format.dtype : format.panels() || s.block() == format.block;
  if (alone && at >= 0 && tensor->shift == 0 && same) {
    const std::byte* start = s.tensor->bytes.data() + (format.panels() ? 0 : format.bytes_for(at));
    if (&device != &cpu_device()) {
      return {.fill = [start, file = checkpoint.file, entry = s.tensor](const Tensor& to) {
        to.device().upload(to.data(), start, to.format().bytes_for(to.shape()));
        file->release(*entry);
      }};
    }
    const int64_t step = format.plain() ? size_of(format.dtype) : format.panels() ? kPanelLine : 1;
    if (reinterpret_cast<uintptr_t>(start) % static_cast<uintptr_t>(step) == 0) {
      return {.in_place = const_cast<std::byte*>(start),  // read only: Param::writable makes a copy first
              .owner = checkpoint.file,
              .release = [file = checkpoint.file, entry = s.tensor] { file->release(*entry); }};
    }
  }
  return {.fill = [pieces, file = checkpoint.file, names = checkpoint.names](const Tensor& to) {
    fill_weight(to, pieces, *file, *names);
  }};
}

}  // namespace

Weights Checkpoint::weights(Device& device, BlockWeights blocks) const {
  std::map<std::string_view, std::vector<Piece>> pieces;
  for (const NamedTensor& tensor : names->tensors()) {
    for (size_t p = 0; p < tensor.parts.size(); ++p) pieces[tensor.parts[p].weight].push_back({&tensor, p});
  }
  Weights weights;
  for (const WeightSpec& weight : weight_list(spec)) {
    const auto found = pieces.find(weight.name);
    if (found == pieces.end()) continue;  // a partial model; complete ones name every weight
    const std::vector<Piece>& of_weight = found->second;
    std::optional<Format> format;
    if (blocks == BlockWeights::kept) format = block_format(weight, of_weight, *file);
    if (!format) format = weight_dtype(of_weight, *file, spec.dtype);
    weights.add(Param(weight.name, device, *format, weight.shape, source_of(of_weight, *this, *format, device)));
  }
  return weights;
}

}  // namespace qkv

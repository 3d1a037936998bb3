#include "model/initialise.h"

#include <algorithm>

#include "base/error.h"
#include "base/random_fill.h"
#include "io/floats.h"
#include "model/checkpoint/tensor_layout.h"
#include "model/families/config_keys.h"

namespace qkv {
namespace {

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class Drawer {
 public:
  Drawer(const NewModelOptions& options, ThreadPool& pool)
      : options_(options), size_(options.dtype == "F32" ? 4 : 2), pool_(pool) {}

  size_t size() const { return size_; }

  // Numbers [first, ...) of a weight as bytes of a file.
  void draw(const WeightSpec& weight, int64_t first, std::span<std::byte> out) const {
    constexpr size_t kBlock = 16384;  // fits the cache
    const size_t count = out.size() / size_, blocks = (count + kBlock - 1) / kBlock;
    pool_.run(static_cast<int64_t>(blocks), [&](int64_t block, int) {
      const size_t begin = static_cast<size_t>(block) * kBlock, some = std::min(kBlock, count - begin);
      std::vector<float> numbers(some);
      initial_numbers(weight, options_.seed, first + static_cast<int64_t>(begin), numbers);
      encode_floats(options_.dtype, numbers, out.subspan(begin * size_, some * size_));
    });
  }

  void give(const NamedTensor& tensor, const TensorNames& names, ByteSink sink) const {
    if (tensor.parts.size() == 1 && PartLayout(tensor, 0, names).contiguous_at() == 0) {
      const PartLayout layout(tensor, 0, names);
      return give_in_pieces(names.weight(tensor.parts[0].weight), layout.first(), layout.dims().count(), sink);
    }
    std::vector<std::byte> whole;
    for (size_t p = 0; p < tensor.parts.size(); ++p) {
      const PartLayout layout(tensor, p, names);
      std::vector<std::byte> part(static_cast<size_t>(layout.dims().count()) * size_);
      draw(names.weight(tensor.parts[p].weight), layout.first(), part);
      whole.resize(static_cast<size_t>(layout.tensor_count()) * size_);
      layout.write(whole, part, static_cast<int64_t>(size_));
    }
    sink(whole);
  }

 private:
  void give_in_pieces(const WeightSpec& weight, int64_t first, int64_t count, ByteSink sink) const {
    constexpr int64_t kPiece = int64_t{1} << 22;
    std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, count)) * size_);
    for (int64_t done = 0; done < count; done += kPiece) {
      const auto bytes = std::span(piece).first(static_cast<size_t>(std::min(kPiece, count - done)) * size_);
      draw(weight, first + done, bytes);
      sink(bytes);
    }
  }

  const NewModelOptions& options_;
  size_t size_;
  ThreadPool& pool_;
};

}  // namespace

void initial_numbers(const WeightSpec& weight, uint64_t seed, int64_t first, std::span<float> out) {
  const PhiloxKey key = fold({.seed = seed, .step = fnv1a(weight.name)});
  const auto value = static_cast<float>(weight.init.value);
  switch (weight.init.kind) {
    case Init::Kind::constant:
      std::ranges::fill(out, value);
      return;
    case Init::Kind::normal:
      return fill_normal(key, static_cast<uint64_t>(first), value, out);
    case Init::Kind::uniform:
      return fill_uniform(key, static_cast<uint64_t>(first), value, out);
  }
}

void write_new_model(const std::filesystem::path& folder, const Json& config, const NewModelOptions& options,
                     ThreadPool& pool, const WriteProgress& progress) {
  const Config read(config, "config.json");
  const ModelSpec spec = read_spec(read);
  check_config_keys(read);
  const TensorNames names = hugging_face_names(spec);
  const Drawer drawer(options, pool);
  std::vector<OutgoingTensor> tensors;
  for (const NamedTensor& tensor : names.tensors()) {
    tensors.push_back({.name = tensor.name, .dtype = options.dtype, .shape = tensor.shape, .give = [&](ByteSink sink) {
                         drawer.give(tensor, names, sink);
                       }});
  }
  Json out = config;
  out["architectures"] = {family_of(spec.family, "config.json").architecture};
  write_hugging_face(folder, out, std::move(tensors), {.dtype = options.dtype, .progress = progress});
}

}  // namespace qkv

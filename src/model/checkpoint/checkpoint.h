// Loading and saving a model: config, tensors and weights.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "model/checkpoint/tensor_file.h"
#include "model/families/family.h"
#include "model/model.h"

namespace qkv {

// Weights that the file holds in blocks (GGUF, q8, q4): kept in blocks, or decoded to plain numbers.
enum class BlockWeights : uint8_t { kept, decoded };

// An opened model whose config and tensors agree in every name, shape and type. No weight has been read yet.
struct Checkpoint {
  Json config;  // as Hugging Face spells it, also for GGUF
  ModelSpec spec;
  std::shared_ptr<const TensorFile> file;
  std::shared_ptr<const TensorNames> names;

  // A Hugging Face folder, one of qkv quantize, or a GGUF file.
  static Checkpoint open(const std::filesystem::path& path);

  // Weights stay in the mapped file until a pass first uses them; those already in the right layout are used in place.
  // Only weights of products and lookups can be kept in blocks, and none that is trained.
  Weights weights(Device& device, BlockWeights blocks = BlockWeights::decoded) const;
  std::unique_ptr<Model> model(Device& device = cpu_device(), BlockWeights blocks = BlockWeights::kept) const {
    return Model::make(spec, weights(device, blocks));
  }
};

// An Error unless the file has every named tensor, with its shape and a valid type for weights.
enum class Extras : uint8_t { refused, allowed };  // tensors without a name in the list
void check_tensors(const TensorFile& file, const TensorNames& names, Extras extras);

// The tensor names of a Hugging Face folder.
TensorNames hugging_face_names(const ModelSpec& spec);

const char* stored_name(DType dtype);  // "F32", "BF16" or "F16"

// The stored type of a tensor, given the type of its weight in memory; see encodes_floats().
using StoredAs = std::function<std::string(const NamedTensor& tensor, const std::string& own)>;
// Weights as tensors of a file. Each is loaded when it is written, then released.
std::vector<OutgoingTensor> outgoing_tensors(const Weights& weights, const TensorNames& names,
                                             const StoredAs& stored_as);

using WriteProgress = std::function<void(int64_t bytes, int64_t of)>;
// The same tensors, reporting the bytes written.
std::vector<OutgoingTensor> counted(std::vector<OutgoingTensor> tensors, const WriteProgress& progress);

// A model folder to be written, atomically.
struct ModelFolder {
  Json config;
  std::vector<OutgoingTensor> tensors;
  std::vector<std::filesystem::path> copied;  // other files to copy: the tokenizer etc.
  std::map<std::string, std::string> made;    // other files to write: name and text
  WriteProgress progress;
  bool cache_aligned = false;  // one file whose data starts on a cache line; otherwise shards
};
void write_model_folder(const std::filesystem::path& folder, ModelFolder content);

struct HuggingFaceOutput {
  std::string dtype;  // "F32", "BF16" or "F16"; empty keeps each weight as it is
  std::vector<std::filesystem::path> copied;
  std::map<std::string, std::string> made = {};
  WriteProgress progress;
};
// Writes config.json and safetensors into a new folder, atomically.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, const Weights& weights,
                        const TensorNames& names, const HuggingFaceOutput& output);
// The same for given tensors, all of the output's dtype unless it is empty.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, std::vector<OutgoingTensor> tensors,
                        const HuggingFaceOutput& output);

}  // namespace qkv

// A model on disk: its config, its tensors, and how they become weights and go back.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "model/checkpoint/tensor_file.h"
#include "model/families/family.h"
#include "model/model.h"

namespace qkv {

// What becomes of weights that the file holds in blocks (of GGUF, q8, q4): multiplied as they are, or made plain
// numbers first.
enum class BlockWeights : uint8_t { kept, decoded };

// Everything known without reading a number: config and tensors agree in every name, shape and type.
struct Checkpoint {
  Json config;  // as Hugging Face spells it, also for GGUF
  ModelSpec spec;
  std::shared_ptr<const TensorFile> file;
  std::shared_ptr<const TensorNames> names;

  // A Hugging Face folder, one of qkv quantize, or a GGUF file.
  static Checkpoint open(const std::filesystem::path& path);

  // The weights stay in the mapped file until a pass first needs them; those that lie as a pass wants them are used in
  // place. Only what products and lookups read can be kept in blocks, and nothing that is to be trained.
  Weights weights(Device& device, BlockWeights blocks = BlockWeights::decoded) const;
  std::unique_ptr<Model> model(Device& device = cpu_device(), BlockWeights blocks = BlockWeights::kept) const {
    return Model::make(spec, weights(device, blocks));
  }
};

// An Error unless the file holds every named tensor with its shape, in a type weights can have.
enum class Extras : uint8_t { refused, allowed };  // tensors nobody names
void check_tensors(const TensorFile& file, const TensorNames& names, Extras extras);

// The names its tensors have in a Hugging Face folder.
TensorNames hugging_face_names(const ModelSpec& spec);

const char* stored_name(DType dtype);  // "F32", "BF16" or "F16"

// What a tensor of the file is stored as, given what its weight is in memory; see encodes_floats().
using StoredAs = std::function<std::string(const NamedTensor& tensor, const std::string& own)>;
// Weights as tensors of a file. Numbers are made when they are written, and given back to the system after that.
std::vector<OutgoingTensor> outgoing_tensors(const Weights& weights, const TensorNames& names,
                                             const StoredAs& stored_as);

using WrittenSoFar = std::function<void(int64_t bytes, int64_t of)>;
// The same tensors, telling how many of their bytes are written.
std::vector<OutgoingTensor> counted(std::vector<OutgoingTensor> tensors, const WrittenSoFar& progress);

// A folder with a model, all its tensors given: it appears whole or not at all.
struct ModelFolder {
  Json config;
  std::vector<OutgoingTensor> tensors;
  std::vector<std::filesystem::path> copied;  // files that come along: tokenizer and the like
  WrittenSoFar progress;
  bool in_lines = false;  // in one file whose data starts on a cache line; else in shards
};
void write_model_folder(const std::filesystem::path& folder, ModelFolder content);

struct HuggingFaceOutput {
  std::string dtype;  // "F32", "BF16" or "F16"; empty keeps each weight as it is
  std::vector<std::filesystem::path> copied;
  WrittenSoFar progress;
};
// config.json and safetensors, in a folder that appears whole or not at all.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, const Weights& weights,
                        const TensorNames& names, const HuggingFaceOutput& output);
// The same of tensors that come from elsewhere, all of the output's dtype unless it is empty.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, std::vector<OutgoingTensor> tensors,
                        const HuggingFaceOutput& output);

}  // namespace qkv

// A model on disk: its config, its tensors, and how they become weights and go back.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "model/family.h"
#include "model/model.h"
#include "model/tensor_file.h"

namespace qkv {

// Everything known without reading a number: config and tensors agree in every name, shape and type.
struct Checkpoint {
  Json config;  // as Hugging Face spells it, also for GGUF
  ModelSpec spec;
  std::shared_ptr<const TensorFile> file;
  std::shared_ptr<const TensorNames> names;

  // A Hugging Face folder or a GGUF file.
  static Checkpoint open(const std::filesystem::path& path);

  // The weights stay in the mapped file until a pass first needs them; those that lie as a pass wants them are used in
  // place.
  Weights weights(Device& device) const;
  std::unique_ptr<Model> model(Device& device = cpu_device()) const { return Model::make(spec, weights(device)); }
};

// The names its tensors have in a Hugging Face folder.
TensorNames hugging_face_names(const ModelSpec& spec);

// Weights as tensors of a file of this dtype ("F32", "BF16", "F16"); empty keeps each as it is. Numbers are made when
// they are written, and given back to the system after that.
std::vector<OutgoingTensor> outgoing_tensors(const Weights& weights, const TensorNames& names,
                                             const std::string& dtype);

using WrittenSoFar = std::function<void(int64_t bytes, int64_t of)>;
// config.json and safetensors, in a folder that appears whole or not at all.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, const Weights& weights,
                        const TensorNames& names, const std::string& dtype, const WrittenSoFar& progress = {});
// The same of tensors that come from elsewhere, all of this dtype unless it is empty.
void write_hugging_face(const std::filesystem::path& folder, const Json& config, std::vector<OutgoingTensor> tensors,
                        const std::string& dtype, const WrittenSoFar& progress = {});

}  // namespace qkv

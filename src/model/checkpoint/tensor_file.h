// The tensors of a model on disk by name, for any file format.
#pragma once

#include <filesystem>
#include <memory>

#include "io/stored_tensor.h"

namespace qkv {

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<StoredTensor>& entries() const = 0;
  virtual const StoredTensor* find(std::string_view name) const = 0;
  virtual void release(const StoredTensor& entry) const = 0;  // drops the pages; the bytes stay readable
};

// Any of Safetensors, SafetensorsFolder, Gguf.
template <class Container>
class TensorFileOf : public TensorFile {
 public:
  explicit TensorFileOf(Container container) : container_(std::move(container)) {}
  const std::string& name() const override { return container_.name(); }
  const std::vector<StoredTensor>& entries() const override { return container_.entries(); }
  const StoredTensor* find(std::string_view name) const override { return container_.find(name); }
  void release(const StoredTensor& entry) const override { container_.release(entry); }

 private:
  Container container_;
};

}  // namespace qkv

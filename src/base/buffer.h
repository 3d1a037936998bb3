// A fixed-size heap array indexed by int64_t, the index type of kernels. For scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace qkv {

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size, T value = T{}) : data_(std::make_unique<T[]>(static_cast<size_t>(size))), size_(size) {
    fill(value);
  }

  void fill(T value) {
    for (int64_t i = 0; i < size_; ++i) data_[static_cast<size_t>(i)] = value;
  }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  std::span<const T> span() const { return {data_.get(), static_cast<size_t>(size_)}; }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0;
};

}  // namespace qkv

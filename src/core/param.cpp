#include "core/param.h"

#include <tuple>

#include "base/error.h"
#include "core/context.h"
#include "core/gradient_watch.h"

namespace qkv {

Param::Param(std::string name, Device& device, Format format, const Shape& shape)
    : Param(std::move(name), device, format, shape, {}) {
  allocate_master();
}

Param::Param(std::string name, Device& device, Format format, const Shape& shape, ParamSource source)
    : name_(std::move(name)), device_(&device), format_(format), shape_(shape), source_(std::move(source)) {
  std::ignore = format.bytes_for(shape);  // rows of whole blocks
  if (source_.in_place != nullptr) master_ = Tensor(device, source_.in_place, format, shape);
}

void Param::allocate_master() const {
  master_storage_ = Storage(*device_, format_, shape_);
  master_ = Tensor(master_storage_, shape_);
}

Tensor Param::master() const {
  if (!master_.defined()) {
    allocate_master();
    source_.fill(master_);
  }
  return master_;
}

void Param::note_read(Context& cx) const {
  if (cx.gradient_watch != nullptr) cx.gradient_watch->reads(*this);
}

Tensor Param::master(Context& cx) const {
  note_read(cx);
  if (cx.arena.planning()) return Tensor(*device_, nullptr, format_, shape_);
  master_read_ = true;
  return master();
}

Tensor Param::writable(Context& cx) {
  if (cx.arena.planning()) return master(cx);
  if (source_.in_place != nullptr) {
    allocate_master();
    device_->upload(master_.data(), source_.in_place, master_storage_.bytes());
    if (source_.release) source_.release();
  }
  const Tensor mine = master();
  source_ = {};
  return mine;
}

void Param::release_master() const {
  if (source_.release) source_.release();
  if (!source_.fill || master_read_) return;
  master_ = {};
  master_storage_ = {};
}

Tensor Param::value(Context& cx) const {
  return value(cx, cx.precision.compute);
}

Tensor Param::value(Context& cx, DType dtype) const {
  note_read(cx);
  if (!format().plain() || format().dtype == dtype) return master(cx);
  if (cx.arena.planning()) return shape_only(dtype);
  QKV_ASSERT(!converted_.defined() || converted_.dtype() == dtype, "weight '", name_, "' was used as ",
             converted_.dtype(), " and now as ", dtype, " in one run");
  if (!converted_.defined()) {
    converted_storage_ = Storage(*device_, Format(dtype), shape_);
    converted_ = Tensor(converted_storage_, shape_);
    stale_ = true;
  }
  if (stale_) {
    cx.kernels.copy(cx.exec, {.y = converted_, .x = master()});
    release_master();
    stale_ = false;
  }
  return converted_;
}

int64_t Param::held_bytes() const {
  return master_storage_.bytes() + converted_storage_.bytes() + tiles_storage_.bytes();
}

Tensor Param::tiles(Context& cx) const {
  note_read(cx);
  if (!cx.kernels.wants_tiles || !format().plain() || shape_.rank() < 2) return {};
  const Shape shape = tiles_shape(shape_);
  if (cx.arena.planning()) return Tensor(*device_, nullptr, Format(DType::bf16), shape);
  if (!tiles_.defined()) {
    tiles_storage_ = Storage(*device_, Format(DType::bf16), shape);
    tiles_ = Tensor(tiles_storage_, shape);
    tiles_stale_ = true;
  }
  if (tiles_stale_) {
    cx.kernels.pack_tiles(cx.exec, {.y = tiles_, .x = master()});
    release_master();
    tiles_stale_ = false;
  }
  return tiles_;
}

Storage Param::take_gradient() {
  if (!has_gradient_) return {};
  has_gradient_ = false;
  gradient_ = {};
  return std::move(gradient_storage_);
}

void Param::put_gradient(Storage gradient) {
  QKV_ASSERT(gradient.bytes() == gradient.format().bytes_for(shape_), "a gradient of ", gradient.bytes(),
             " bytes for the weight '", name_, "' ", shape_);
  gradient_storage_ = std::move(gradient);
  gradient_ = Tensor(gradient_storage_, shape_);
  has_gradient_ = true;
}

Grad Param::use_gradient(DType exact) const {
  if (!trainable) return {};
  QKV_CHECK(format().plain(), "weight '", name_, "' is ", format(), " and cannot be trained",
            Hint("load the model in f32 or bf16, or freeze this weight"));
  if (!gradient_.defined() || gradient_.dtype() != exact) {
    gradient_storage_ = Storage(*device_, Format(exact), shape_);
    gradient_ = Tensor(gradient_storage_, shape_);
    has_gradient_ = false;
  }
  const bool add = has_gradient_;
  has_gradient_ = true;
  return {gradient_, add};
}

}  // namespace qkv

#include "core/param.h"

#include <tuple>

#include "base/error.h"
#include "core/context.h"

namespace qkv {

Param::Param(std::string name, Device& device, Format format, const Shape& shape)
    : name_(std::move(name)), master_storage_(device, format, shape), master_(master_storage_, shape) {}

Param::Param(std::string name, const Tensor& master) : name_(std::move(name)), master_(master) {
  QKV_CHECK(master.contiguous(), "weight '", name_, "' is a view ", master, " with gaps", Hint("copy it first"));
  std::ignore = format().bytes_for(shape());  // rows of whole blocks
}

Tensor Param::value(Context& cx) const {
  return value(cx, cx.precision.compute);
}

Tensor Param::value(Context& cx, DType dtype) const {
  if (!format().plain() || format().dtype == dtype) return master_;
  if (cx.arena.planning())
    return Tensor(master_.device(), master_.data(), Format(dtype), shape());  // for its shape only
  QKV_ASSERT(!form_.defined() || form_.dtype() == dtype, "weight '", name_, "' was used as ", form_.dtype(),
             " and now as ", dtype, " in one run");
  if (!form_.defined()) {
    form_storage_ = Storage(master_.device(), Format(dtype), shape().count());
    form_ = Tensor(form_storage_, shape());
    stale_ = true;
  }
  if (stale_) {
    cx.kernels.copy(cx.exec, {.y = form_, .x = master_});
    stale_ = false;
  }
  return form_;
}

Grad Param::use_gradient(DType exact) const {
  if (!trainable) return {};
  QKV_CHECK(format().plain(), "weight '", name_, "' is ", format(), " and cannot be trained",
            Hint("load the model in f32 or bf16, or freeze this weight"));
  if (!gradient_.defined() || gradient_.dtype() != exact) {
    gradient_storage_ = Storage(master_.device(), Format(exact), shape().count());
    gradient_ = Tensor(gradient_storage_, shape());
    has_gradient_ = false;
  }
  const bool add = has_gradient_;
  has_gradient_ = true;
  return {gradient_, add};
}

}  // namespace qkv

#include "core/context.h"

#include "base/buffer.h"
#include "base/error.h"

namespace qkv {

Tensor Context::make(const Shape& shape, DType dtype) {
  const Tensor t = arena.take(dtype, shape);
  return tape != nullptr ? tape->track(t) : t;
}

Tensor Context::upload(std::span<const int32_t> host) {
  const Tensor t = constant({static_cast<int64_t>(host.size())}, DType::i32);
  if (!arena.planning()) t.device().upload(t.data(), host.data(), static_cast<int64_t>(host.size_bytes()));
  return t;
}

Tensor Context::upload(std::span<const float> host, const Shape& shape) {
  QKV_CHECK(shape.count() == static_cast<int64_t>(host.size()), "upload: ", host.size(), " numbers do not fill ",
            shape);
  const Tensor t = constant(shape, precision.exact);
  if (arena.planning()) return t;
  if (precision.exact == DType::f64) {
    Buffer<double> wide(shape.count());
    for (int64_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<double>(host[static_cast<size_t>(i)]);
    t.device().upload(t.data(), wide.data(), wide.size() * size_of(DType::f64));
  } else {
    t.device().upload(t.data(), host.data(), static_cast<int64_t>(host.size_bytes()));
  }
  return t;
}

Tensor Context::lasting(std::span<const int32_t> host) {
  if (constants == nullptr) return upload(host);
  const Shape shape{static_cast<int64_t>(host.size())};
  return arena.planning() ? Tensor(arena.device(), nullptr, DType::i32, shape)
                          : constants->get(host.data(), DType::i32, shape);
}

Tensor Context::lasting(std::span<const float> host, const Shape& shape) {
  if (constants == nullptr || precision.exact != DType::f32) return upload(host, shape);
  return arena.planning() ? Tensor(arena.device(), nullptr, DType::f32, shape)
                          : constants->get(host.data(), DType::f32, shape);
}

Tensor Context::finish(const char* op, const Tensor& y) {
  if (guard_finite) check_finite(op, "its output", y);
  return y;
}

void Context::check_finite(const char* op, const char* what, const Tensor& t) {
  if (!is_float(t.dtype())) return;
  int64_t count = 0, first = -1;
  kernels.nonfinite(exec, {.x = t, .count = &count, .first = &first});
  QKV_CHECK(count == 0, op, ": ", count, " of ", t.count(), " numbers in ", what, " ", t,
            " are NaN or infinite, the first at index ", first,
            Hint("this is the first op that made one: look at its inputs, the learning rate and the data"));
}

void Context::visit(Place place, Site site, Tensor& x, const Rows* rows) {
  const Ask asked = probe->ask(place, site);
  const bool edits = has(asked, Ask::edit);
  if (!edits && (replaying || !has(asked, Ask::read))) return;
  const Shape before = x.shape();
  const DType dtype = x.dtype();
  probe->visit(*this, {.place = place, .site = site, .rows = rows}, x);
  QKV_CHECK(x.shape() == before && x.dtype() == dtype, "probe: ", name_of(site), " of layer ", place.layer, " was ",
            dtype, " ", before, " but the probe left ", x, Hint("an edit keeps shape and dtype"));
}

}  // namespace qkv

// Small texts and plain passes for tests of looking inside.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/host_values.h"
#include "inspect/texts/reading.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv::test {

// As a model of this kind reads them: pairs, or with every third token to be said again.
inline std::vector<TokenText> tiny_texts(const ModelSpec& spec, const std::vector<int64_t>& lengths) {
  std::vector<TokenText> texts;
  for (const int64_t length : lengths) {
    TokenText text{.ids = some_ids(length, static_cast<uint32_t>(length))};
    if (spec.has_source()) text.source = some_ids(length + 2, 5);
    if (spec.kind == ModelSpec::Kind::encoder_only) {
      for (int64_t i = 0; i < length; ++i) text.targets.push_back(i % 3 == 1 ? 7 : TokenText::kIgnored);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

// What a model says of one text in one plain pass, [N, V].
struct PlainPass {
  Probe* probe = nullptr;
  Precision precision = Precision::f32();
};
inline std::vector<float> plain_logits(const Model& model, const Engine& engine, const TokenText& text,
                                       const PlainPass& pass = {}) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, pass.precision);
  cx.probe = pass.probe;
  const Rows rows = Rows::batch(cx, 1, std::ssize(text.ids));
  const Rows source_rows = Rows::batch(cx, 1, std::ssize(text.source));
  Model::Input input{.ids = cx.upload(text.ids), .rows = &rows};
  if (!text.source.empty()) {
    input.source_ids = cx.upload(text.source);
    input.source_rows = &source_rows;
  }
  return host_floats(model.logits(cx, input));
}

// Numbers of a weight, changed by f(values).
template <class F>
void change_weight(Model& model, const Engine& engine, const std::string& name, F f) {
  for (auto& [key, weight] : model.weights()) {
    if (key != name) continue;
    std::vector<float> values = host_floats(weight.master());
    f(values);
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    const Tensor to = weight.writable(cx);
    to.device().upload(to.data(), values.data(), std::ssize(values) * static_cast<int64_t>(sizeof(float)));
    weight.updated();
    return;
  }
  QKV_FAIL("no weight ", name, Hint("look at weight_list"));
}

}  // namespace qkv::test

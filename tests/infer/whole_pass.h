// Logits of every row of one text from a single pass without caches: what cached ways are held to.
#pragma once

#include <vector>

#include "core/engine.h"
#include "core/host_values.h"
#include "model/model.h"
#include "support/some_ids.h"

namespace qkv::test {

inline std::vector<float> whole_pass(const Model& model, const Engine& engine, Precision precision,
                                     const std::vector<int32_t>& ids, const std::vector<int32_t>& source = {},
                                     int32_t reach = 0) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  Rows rows = Rows::batch(cx, 1, std::ssize(ids));
  const Rows source_rows = Rows::batch(cx, 1, std::ssize(source));
  if (reach > 0) rows.reach = {reach};  // how long the text may become, where angles depend on it
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  if (!source.empty()) {
    input.source_ids = cx.upload(source);
    input.source_rows = &source_rows;
  }
  return host_floats(model.logits(cx, input));  // [N, V]
}

inline int64_t source_words(const ModelSpec& spec) {
  return spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
}

}  // namespace qkv::test

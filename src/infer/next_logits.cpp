#include "infer/next_logits.h"

#include "base/error.h"
#include "model/recorded.h"

namespace qkv {

std::vector<float> next_logits(const Model& model, const Engine& engine, Precision precision,
                               std::span<const std::vector<int32_t>> texts, std::span<const int32_t> source) {
  const auto batch = static_cast<int64_t>(texts.size());
  const auto length = static_cast<int64_t>(texts.empty() ? 0 : texts[0].size());
  QKV_ASSERT(length > 0, "there are ", batch, " texts of ", length, " tokens to go on from");
  std::vector<int32_t> ids, sources;
  for (const std::vector<int32_t>& text : texts) {
    QKV_ASSERT(text.size() == texts[0].size(), "texts have ", text.size(), " and ", texts[0].size(), " tokens");
    ids.insert(ids.end(), text.begin(), text.end());
    sources.insert(sources.end(), source.begin(), source.end());
  }
  Arena arena(engine.device());
  Context cx = engine.context(arena, precision);
  const Rows rows = Rows::batch(cx, batch, length);
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  Rows source_rows;
  if (!source.empty()) {
    source_rows = Rows::batch(cx, batch, static_cast<int64_t>(source.size()));
    input.source_ids = cx.upload(sources);
    input.source_rows = &source_rows;
  }
  const Tensor states = model.states(cx, input);
  std::vector<float> logits;
  for (int64_t b = 0; b < batch; ++b) {
    const std::vector<float> row = host_floats(model.head().forward(cx, states.slice(0, (b + 1) * length - 1, 1)));
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace qkv

#include "inspect/look/embedding_update.h"

#include <algorithm>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/texts/reading.h"

namespace qkv {
namespace {

class NothingRead : public ReadingProbe {
 public:
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site) const override { return Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}
};

// Trainable as long as it lives; then neither the flag nor the gradient's memory is left.
class Trained {
 public:
  explicit Trained(Param& weight) : weight_(weight), was_(weight.trainable) {
    weight_.trainable = true;
    weight_.clear_gradient();
  }
  ~Trained() {
    weight_.take_gradient();
    weight_.trainable = was_;
  }
  Trained(const Trained&) = delete;
  Trained& operator=(const Trained&) = delete;

 private:
  Param& weight_;
  bool was_;
};

Param& weight_of(Model& model, std::string_view wanted) {
  for (auto& [name, weight] : model.weights()) {
    if (name == wanted) return weight;
  }
  QKV_ASSERT(false, "this ", model.spec().family, " has no weight ", wanted);
}

std::vector<float> row_of(const Tensor& matrix, int32_t id) {
  return host_floats(matrix.slice(0, id, 1));
}

}  // namespace

EmbeddingUpdate embedding_update(Model& model, const Engine& engine, const TokenText& text, int64_t token,
                                 Precision precision) {
  const ModelSpec& spec = model.spec();
  QKV_CHECK(spec.kind == ModelSpec::Kind::decoder_only, "this ", spec.family, " is no decoder",
            Hint("the update of an embedding is shown for models that guess the next token"));
  QKV_CHECK(token >= 0 && token < std::ssize(text.ids), "no token ", token, ": the text has tokens 0 to ",
            std::ssize(text.ids) - 1, Hint("tokens are counted from 0"));
  Param& embed = weight_of(model, "embed");
  const Trained trained(embed);
  Reader reader(model, engine, {.precision = precision});
  NothingRead nothing;
  EmbeddingUpdate found{.id = text.ids[static_cast<size_t>(token)], .tied = spec.head.tied};
  found.uses = std::ranges::count(text.ids, found.id);
  found.loss = reader.backward({&text, 1}, nothing).front();
  found.row = row_of(embed.master(), found.id);
  found.gradient = row_of(embed.gradient(), found.id);
  return found;
}

}  // namespace qkv

// The C functions (include/qkv/c.h): the library behind handles, with errors as texts of the calling thread.
#include <qkv/c.h>
#include <qkv/qkv.h>

#include <cstdlib>

#include "api/c_calls.h"
#include "base/json.h"

struct qkv_model {
  qkv::v1::Model model;
};

struct qkv_text {
  qkv::v1::Generation text;
  std::string piece = {}, ended = {};
};

namespace qkv::v1 {
namespace {

qkv_generate_options generate_defaults() {
  return {.size = sizeof(qkv_generate_options),
          .max_new = 0,
          .temperature = -1,
          .top_p = 0,
          .top_k = -1,
          .seed = 0,
          .stop = nullptr};
}

GenerateOptions outer(const qkv_generate_options* given) {
  const qkv_generate_options from = taken(given, generate_defaults());
  GenerateOptions options{.seed = from.seed};
  if (from.max_new > 0) options.max_new = from.max_new;
  if (!(from.temperature < 0)) options.temperature = from.temperature;
  if (from.top_p != 0) options.top_p = from.top_p;
  if (from.top_k >= 0) options.top_k = from.top_k;
  if (from.stop != nullptr) options.stop = {from.stop};
  return options;
}

OpenOptions outer(const qkv_open_options* given) {
  const qkv_open_options from = taken(given, qkv_open_options{});
  QKV_CHECK(from.device >= QKV_DEVICE_AUTO && from.device <= QKV_DEVICE_CUDA, "the device is ", from.device,
            Hint("QKV_DEVICE_AUTO, QKV_DEVICE_CPU or QKV_DEVICE_CUDA"));
  QKV_CHECK(from.precision >= QKV_PRECISION_AUTO && from.precision <= QKV_PRECISION_BF16, "the precision is ",
            from.precision, Hint("QKV_PRECISION_AUTO, QKV_PRECISION_F32 or QKV_PRECISION_BF16"));
  OpenOptions options{.device = static_cast<Device>(from.device),
                      .precision = static_cast<Precision>(from.precision),
                      .threads = from.threads,
                      .context = from.context};
  if (from.texts > 0) options.texts = from.texts;
  return options;
}

Json json_of(const Estimate& e) {
  return {{"mean", e.mean}, {"low", e.low}, {"high", e.high}, {"n", e.n}, {"texts", e.texts}};
}

void call(qkv_tap_function function, void* user, const std::string& name, Shape shape, std::span<float> values) {
  const int code = function(user, name.c_str(), shape.data(), shape.size(), values.data(), values.size());
  QKV_CHECK(code == 0, "the function that was given to qkv_read returned ", code, " at ", name,
            Hint("0 goes on, anything else ends the reading"));
}

Patched patched(qkv_model* model, const char* clean, const char* corrupt, int32_t answer, int32_t wrong) {
  check_given(model, "model");
  check_given(clean, "clean");
  check_given(corrupt, "corrupt");
  PatchOptions options;
  if (answer != -1) options.answer = answer;
  if (wrong != -1) options.wrong = wrong;
  return model->model.patch(clean, corrupt, options);
}

}  // namespace
}  // namespace qkv::v1

using namespace qkv::v1;  // NOLINT: of this file alone

extern "C" {

QKV_C_API const char* qkv_version() {
  return version();
}

QKV_C_API const char* qkv_error() {
  return last_error().message.c_str();
}

QKV_C_API const char* qkv_error_hint() {
  return last_error().hint.c_str();
}

QKV_C_API void qkv_free(void* returned) {
  std::free(returned);
}

QKV_C_API qkv_model* qkv_open(const char* path_or_name, const qkv_open_options* options) {
  return guarded<qkv_model*>(nullptr, [&] {
    check_given(path_or_name, "path_or_name");
    return new qkv_model{Model(path_or_name, outer(options))};
  });
}

QKV_C_API void qkv_close(qkv_model* model) {
  delete model;
}

QKV_C_API char* qkv_info(qkv_model* model) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    const ModelInfo info = model->model.info();
    return c_text(qkv::json_text(qkv::Json{{"path", info.path},
                                           {"family", info.family},
                                           {"kind", info.kind},
                                           {"parameters", info.parameters},
                                           {"layers", info.layers},
                                           {"width", info.width},
                                           {"heads", info.heads},
                                           {"vocabulary", info.vocabulary},
                                           {"context", info.context},
                                           {"device", info.device},
                                           {"precision", info.precision},
                                           {"looking", info.looking}}));
  });
}

QKV_C_API int32_t* qkv_encode(qkv_model* model, const char* text, size_t* count) {
  return guarded<int32_t*>(nullptr, [&] {
    check_given(model, "model");
    check_given(text, "text");
    check_given(count, "count");
    const std::vector<int32_t> ids = model->model.tokenizer().encode(text);
    *count = ids.size();
    return copied(ids.data(), ids.size());
  });
}

QKV_C_API char* qkv_decode(qkv_model* model, const int32_t* ids, size_t count) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    if (count > 0) check_given(ids, "ids");
    QKV_CHECK(count <= PTRDIFF_MAX / sizeof(int32_t), "count is ", count, " but no memory holds so many ids",
              qkv::Hint("give the number of ids; a negative number reads as a large one"));
    return c_text(model->model.tokenizer().decode({ids, count}));
  });
}

QKV_C_API void qkv_generate_defaults(qkv_generate_options* options) {
  if (options != nullptr) *options = generate_defaults();
}

QKV_C_API char* qkv_generate(qkv_model* model, const char* prompt, const qkv_generate_options* options) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    check_given(prompt, "prompt");
    return c_text(model->model.generate(prompt, outer(options)).text);
  });
}

QKV_C_API qkv_text* qkv_start(qkv_model* model, const char* prompt, const qkv_generate_options* options) {
  return guarded<qkv_text*>(nullptr, [&] {
    check_given(model, "model");
    check_given(prompt, "prompt");
    return new qkv_text{model->model.start(prompt, outer(options))};
  });
}

QKV_C_API const char* qkv_next(qkv_text* text) {
  return guarded<const char*>(nullptr, [&]() -> const char* {
    check_given(text, "text");
    std::optional<Piece> piece = text->text.next();
    if (!piece) {
      const Generated made = text->text.result();
      QKV_CHECK(made.ended != Ended::failed, "writing failed: ", made.error, qkv::Hint(made.hint));
      return nullptr;
    }
    text->piece = std::move(piece->text);
    return text->piece.c_str();
  });
}

QKV_C_API void qkv_text_cancel(qkv_text* text) {
  guarded(0, [&] {
    check_given(text, "text");
    text->text.cancel();
    return 0;
  });
}

QKV_C_API const char* qkv_text_ended(qkv_text* text) {
  return guarded<const char*>(nullptr, [&] {
    check_given(text, "text");
    text->ended = name_of(text->text.result().ended);
    return text->ended.c_str();
  });
}

QKV_C_API void qkv_text_free(qkv_text* text) {
  delete text;
}

QKV_C_API int qkv_likelihood(qkv_model* model, const char* text, double* total, int64_t* tokens) {
  return guarded(1, [&] {
    check_given(model, "model");
    check_given(text, "text");
    check_given(total, "total");
    const Likelihood found = model->model.likelihood(Text(text));
    *total = found.total;
    if (tokens != nullptr) *tokens = std::ssize(found.log_p);
    return 0;
  });
}

QKV_C_API float* qkv_embed(qkv_model* model, const char* text, size_t* width) {
  return guarded<float*>(nullptr, [&] {
    check_given(model, "model");
    check_given(text, "text");
    check_given(width, "width");
    const std::vector<float> vector = model->model.embed({Text(text)}).front();
    *width = vector.size();
    return copied(vector.data(), vector.size());
  });
}

QKV_C_API int qkv_read(qkv_model* model, const char* text, const char* taps, int edit, qkv_tap_function function,
                       void* user) {
  return guarded(1, [&] {
    check_given(model, "model");
    check_given(text, "text");
    check_given(taps, "taps");
    check_given(reinterpret_cast<const void*>(function), "function");
    ReadOptions options;
    const auto edits = [&](const std::string& name, Shape shape, std::span<float> values) {
      call(function, user, name, shape, values);
    };
    if (edit != 0) {
      options.edit.push_back({taps, edits});
    } else {
      options.see.push_back({taps, [&](const std::string& name, Shape shape, std::span<const float> values) {
                               std::vector<float> own(values.begin(), values.end());  // the caller may write into them
                               edits(name, shape, own);
                             }});
    }
    model->model.read(text, options);
    return 0;
  });
}

QKV_C_API char* qkv_look_json(qkv_model* model, const char* text) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    check_given(text, "text");
    return c_text(model->model.look(text).json());
  });
}

QKV_C_API char* qkv_look_html(qkv_model* model, const char* text) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    check_given(text, "text");
    return c_text(model->model.look(text).html());
  });
}

QKV_C_API char* qkv_cut(qkv_model* model, const char* heads, const char* data) {
  return guarded<char*>(nullptr, [&] {
    check_given(model, "model");
    check_given(heads, "heads");
    Cut cut{.heads = heads};
    if (data != nullptr) cut.data = Data(data);
    const CutEffect effect = model->model.cut(cut);
    return c_text(qkv::json_text(qkv::Json{{"before", json_of(effect.before)},
                                           {"after", json_of(effect.after)},
                                           {"delta", json_of(effect.delta)},
                                           {"kl", json_of(effect.kl)},
                                           {"same_guess", json_of(effect.same_guess)}}));
  });
}

QKV_C_API char* qkv_patch_json(qkv_model* model, const char* clean, const char* corrupt, int32_t answer,
                               int32_t wrong) {
  return guarded<char*>(nullptr, [&] { return c_text(patched(model, clean, corrupt, answer, wrong).json); });
}

QKV_C_API char* qkv_patch_html(qkv_model* model, const char* clean, const char* corrupt, int32_t answer,
                               int32_t wrong) {
  return guarded<char*>(nullptr, [&] { return c_text(patched(model, clean, corrupt, answer, wrong).html()); });
}

}  // extern "C"

// Writing texts: all at once, piece by piece, by beam search, translated.
#include "bindings.h"

namespace qkv_python {
namespace {

qkv::GenerateOptions generate_options(const py::dict& values) {
  const Options options(values);
  qkv::GenerateOptions out;
  options.number("max_new", out.max_new).number("top_k", out.top_k).number("no_repeat_ngram", out.no_repeat_ngram);
  options.take("seed", out.seed, "a whole number, 0 or more")
      .number("logprobs", out.logprobs)
      .number("draft", out.draft);
  options.real("temperature", out.temperature).real("top_p", out.top_p).real("min_p", out.min_p);
  options.real("typical_p", out.typical_p).real("repetition_penalty", out.repetition_penalty);
  options.real("presence_penalty", out.presence_penalty).real("frequency_penalty", out.frequency_penalty);
  options.take("logit_bias", out.logit_bias, "a dict of token ids and numbers");
  options.take("stop", out.stop, "a list of str").take("json_schema", out.json_schema, "a str of JSON");
  return out;
}

py::tuple tokens_of(const std::vector<qkv::Token>& tokens) {  // ids, log-probabilities, most likely ones
  py::list ids, logprobs, most_likely;
  for (const qkv::Token& token : tokens) {
    ids.append(token.id);
    logprobs.append(token.logprob);
    most_likely.append(token.most_likely);
  }
  return py::make_tuple(ids, logprobs, most_likely);
}

py::dict made_of(const qkv::Generated& made) {
  return py::dict("text"_a = to_str(made.text), "tokens"_a = tokens_of(made.tokens),
                  "ended"_a = qkv::name_of(made.ended), "stop"_a = to_str(made.stop), "error"_a = to_str(made.error),
                  "prompt_tokens"_a = made.prompt_tokens, "cached_tokens"_a = made.cached_tokens,
                  "read_seconds"_a = made.read_seconds, "write_seconds"_a = made.write_seconds);
}

qkv::Generated checked(qkv::Generated made) {
  if (made.ended == qkv::Ended::failed) {
    throw qkv::Error(qkv::Error::Kind::input, "writing failed: " + made.error, made.hint, {__FILE__, __LINE__});
  }
  return made;
}

// Whether the function wants more; whatever it raises is thrown.
bool told(const py::object& on_text, const std::string& piece) {
  const py::gil_scoped_acquire hold;
  const py::object answer = on_text(to_str(piece));
  return !answer.is(py::bool_(false));
}

py::dict generate(const qkv::Model& model, py::handle prompt, const py::dict& options, const py::object& on_text) {
  const qkv::Text text = text_of(prompt);
  const qkv::GenerateOptions how = generate_options(options);
  const bool tells = !on_text.is_none();
  Signals signals;
  qkv::Generated made;
  {
    const py::gil_scoped_release free;
    qkv::Generation writing = model.start(text, how);  // what is thrown below cancels it
    bool wanted = true;
    while (const std::optional<qkv::Piece> piece = writing.next()) {
      signals.check();
      if (!tells || !wanted || piece->text.empty()) continue;
      wanted = told(on_text, piece->text);
      if (!wanted) writing.cancel();
    }
    made = checked(writing.result());
  }
  return made_of(made);
}

py::list generate_many(const qkv::Model& model, py::handle prompts, const py::dict& options) {
  const std::vector<qkv::Text> texts = texts_of(prompts);
  const qkv::GenerateOptions how = generate_options(options);
  Signals signals;
  std::vector<qkv::Generated> made;
  {
    const py::gil_scoped_release free;
    std::vector<qkv::Generation> writing;
    for (const qkv::Text& text : texts) writing.push_back(model.start(text, how));
    for (qkv::Generation& one : writing) {
      while (one.next()) signals.check();
      made.push_back(checked(one.result()));
    }
  }
  py::list out;
  for (const qkv::Generated& one : made) out.append(made_of(one));
  return out;
}

qkv::Generation start(const qkv::Model& model, py::handle prompt, const py::dict& options) {
  const qkv::Text text = text_of(prompt);
  const qkv::GenerateOptions how = generate_options(options);
  const py::gil_scoped_release free;
  return model.start(text, how);
}

// The next piece that shows something; None at the end.
py::object next_piece(qkv::Generation& writing) {
  Signals signals;
  std::optional<qkv::Piece> piece;
  {
    const py::gil_scoped_release free;
    do {
      signals.check();
      piece = writing.next();
    } while (piece && piece->text.empty() && piece->tokens.empty());
  }
  if (!piece) return py::none();
  return py::make_tuple(to_str(piece->text), tokens_of(piece->tokens));
}

py::list search(const qkv::Model& model, py::handle prompt, const py::dict& values) {
  const qkv::Text text = text_of(prompt);
  const Options options(values);
  qkv::SearchOptions how;
  options.number("beams", how.beams).number("n", how.n).number("max_new", how.max_new);
  options.number("no_repeat_ngram", how.no_repeat_ngram);
  options.real("length_penalty", how.length_penalty).real("repetition_penalty", how.repetition_penalty);
  Signals signals;
  how.go_on = [&] {
    signals.check();
    return true;
  };
  std::vector<qkv::Generated> found;
  {
    const py::gil_scoped_release free;
    found = model.search(text, how);
  }
  py::list out;
  for (const qkv::Generated& one : found) out.append(made_of(one));
  return out;
}

py::list translate(const qkv::Model& model, const std::vector<std::string>& texts, const py::dict& values) {
  const Options options(values);
  qkv::TranslateOptions how;
  options.number("beams", how.beams).number("max_new", how.max_new).number("n", how.n).number("rows", how.rows);
  options.real("length_penalty", how.length_penalty).take("prefix", how.prefix, "a str");
  Signals signals;
  how.go_on = [&](size_t) {
    signals.check();
    return true;
  };
  std::vector<std::vector<qkv::Translation>> found;
  {
    const py::gil_scoped_release free;
    found = model.translate(texts, how);
  }
  py::list out;
  for (const std::vector<qkv::Translation>& of_text : found) {
    py::list all;
    for (const qkv::Translation& one : of_text) all.append(py::make_tuple(to_str(one.text), one.score, one.ids));
    out.append(all);
  }
  return out;
}

}  // namespace

void add_generation(py::module_& module) {
  py::class_<qkv::Generation>(module, "Generation")
      .def("next", next_piece)
      .def("result", [](const qkv::Generation& self) { return made_of(self.result()); })
      .def("ended", &qkv::Generation::ended)
      .def("cancel", &qkv::Generation::cancel, py::call_guard<py::gil_scoped_release>());
}

void add_writing(ModelClass& model) {
  model.def("generate", generate)
      .def("generate_many", generate_many)
      .def("start", start)
      .def("search", search)
      .def("translate", translate);
}

}  // namespace qkv_python

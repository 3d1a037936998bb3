// /v1/translate: {"input": text or list, "beams", "n", "length_penalty", "max_tokens", "prefix", "alignment"}.
#include <fmt/format.h>

#include "server/requests/limits.h"
#include "server/routes.h"

namespace qkv::server {
namespace {

struct TranslateRequest {
  TranslateQueue::Job job;
  int64_t tokens = 0;  // of the sources
};

TranslateRequest read_translate(const Fields& fields, const ServedModel& model, Budget& budget) {
  const OpenModel& open = model.model();
  const BeamChoices most = model.beam_limits();
  const BeamChoices chosen{.beams = fields.whole("beams", {1, *most.beams}),
                           .max_new = fields.whole("max_tokens", {1, *most.max_new}),
                           .length_penalty = fields.number("length_penalty", {-10, 10}),
                           .n_best = fields.whole("n", {1, *most.beams}).value_or(1)};
  TranslateRequest request;
  const std::vector<int32_t> start = open.target_start();
  BeamOptions& options = request.job.options;
  options = beam_options(open.defaults(), chosen,
                         {.prompt = std::ssize(start), .context = model.context(), .has_source = true});
  options.beams = std::min(options.beams, *most.beams);
  if (options.n_best > options.beams) {
    fields.fail("n", fmt::format("is {} but there are {} beams", options.n_best, options.beams));
  }
  request.job.align = fields.flag("alignment").value_or(false);
  const std::string prefix = fields.text("prefix", {0, 4096}).value_or("");
  const auto add = [&](const std::string& text) {
    BeamRequest one{.prompt = start};
    check_text_length(open.tokenizer(), text, model.context(), "input", budget);
    if (text.find_first_not_of(" \t\r\n") != text.npos) one.source = open.tokenizer().encode(prefix + text);
    if (std::ssize(one.source) > model.context()) {
      ApiError error(400,
                     fmt::format("input has a text of {} tokens, but this model reads {}; cut it into sentences",
                                 one.source.size(), model.context()),
                     "input");
      error.code = "context_length_exceeded";
      throw error;
    }
    request.tokens += std::ssize(one.source);
    request.job.texts.push_back(std::move(one));
  };
  const OrderedJson* input = fields.find("input");
  if (input == nullptr) fields.fail("input", "is missing: it is a string or a list of strings");
  if (input->is_string()) {
    add(input->get<std::string>());
  } else {
    for (const OrderedJson& one : *fields.list("input", {1, kMostTranslations})) {
      if (!one.is_string()) fields.fail("input", "has an entry that is no string");
      add(one.get<std::string>());
    }
  }
  return request;
}

OrderedJson alignment_of(const WordAlignment& alignment) {
  OrderedJson source = OrderedJson::array(), target = source, pairs = source, weights = source;
  for (const TokenWord& word : alignment.source) source.push_back(word.text);
  for (const TokenWord& word : alignment.target) target.push_back(word.text);
  for (const auto& [s, t] : alignment.pairs()) pairs.push_back({s, t});
  for (size_t t = 0; t < alignment.target.size(); ++t) {
    OrderedJson row = OrderedJson::array();
    for (size_t s = 0; s < alignment.source.size(); ++s) row.push_back(alignment.at(t, s));
    weights.push_back(std::move(row));
  }
  return {{"source", source}, {"target", target}, {"layer", alignment.layer}, {"pairs", pairs}, {"weights", weights}};
}

OrderedJson translation_json(const Translation& made, const Tokenizer& tokenizer, size_t index, int64_t& written) {
  const auto text_of = [&](const BeamSearch::Hypothesis& hypothesis) {
    std::vector<int32_t> ids(hypothesis.ids.begin() + 1, hypothesis.ids.end());
    std::erase_if(ids, [&](int32_t id) { return !tokenizer.has(id); });  // vocabularies are often rounded up
    return tokenizer.decode(ids, {.skip_specials = true});
  };
  OrderedJson out{{"index", index}, {"text", ""}};
  if (made.found.empty()) return out;  // nothing to translate
  out["text"] = text_of(made.found.front());
  out["score"] = made.found.front().score;
  OrderedJson others = OrderedJson::array();
  for (size_t i = 0; i < made.found.size(); ++i) {
    written += std::ssize(made.found[i].ids) - 1;
    if (i > 0) others.push_back({{"text", text_of(made.found[i])}, {"score", made.found[i].score}});
  }
  if (!others.empty()) out["alternatives"] = std::move(others);
  if (made.alignment) out["alignment"] = alignment_of(*made.alignment);
  if (!made.unaligned.empty()) out["alignment_error"] = made.unaligned;
  return out;
}

}  // namespace

void answer_translate(const Fields& fields, ServedModel& model, const RouteContext& route) {
  TranslateQueue& queue = model.translations();
  refuse_look(fields);
  TranslateRequest request = read_translate(fields, model, route.budget);
  request.job.on_end = [exchange = route.exchange, writer = route.writer, metrics = route.metrics, &model,
                        tokens = request.tokens](std::vector<Translation> found, std::exception_ptr failed) {
    writer->add([=, &model, made = std::make_shared<std::vector<Translation>>(std::move(found))] {
      try {
        if (failed) std::rethrow_exception(failed);
        int64_t written = 0;
        OrderedJson all = OrderedJson::array();
        for (const Translation& one : *made) {
          all.push_back(translation_json(one, model.model().tokenizer(), all.size(), written));
        }
        metrics->tokens(model.name(), tokens, written);
        exchange->note(
            fmt::format("model={} prompt={} written={} texts={}", model.name(), tokens, written, all.size()));
        exchange->respond(json_response(
            {{"object", "list"},
             {"translations", std::move(all)},
             {"model", model.name()},
             {"usage",
              {{"prompt_tokens", tokens}, {"completion_tokens", written}, {"total_tokens", tokens + written}}}}));
      } catch (...) {
        exchange->respond(server_fault_of(std::current_exception()).response());
      }
    });
  };
  const TranslateQueue::Ticket ticket = queue.submit(std::move(request.job));
  route.exchange->when_gone([&queue, ticket, metrics = route.metrics, wake = route.wake] {
    queue.cancel(ticket);
    metrics->cancelled();
    wake();
  });
  route.wake();
}

}  // namespace qkv::server

#include "server/requests/generation_request.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "server/requests/limits.h"
#include "server/requests/response_format.h"
#include "text/unicode/utf8.h"

namespace qkv::server {
namespace {

uint64_t random_seed() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

std::vector<std::string> read_stops(const Fields& fields) {
  const OrderedJson* stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) return {*fields.text("stop", {1, kMostStopBytes})};
  if (!stop->is_array()) fields.fail("stop", "is neither a string nor a list of strings");
  std::vector<std::string> stops;
  for (const OrderedJson& one : *fields.list("stop", {0, kMostStops})) {
    const bool good = one.is_string() && !one.get_ref<const std::string&>().empty() &&
                      one.get_ref<const std::string&>().size() <= kMostStopBytes;
    if (!good) {
      fields.fail("stop",
                  fmt::format("has {} but its entries are strings of 1 to {} bytes", shown_json(one), kMostStopBytes));
    }
    stops.push_back(one.get<std::string>());
  }
  return stops;
}

std::map<int32_t, double> read_biases(const Fields& fields, int64_t vocabulary) {
  const std::optional<Fields> given = fields.object("logit_bias");
  if (!given) return {};
  if (given->json().size() > kMostBiases) {
    fields.fail("logit_bias", fmt::format("has {} entries but may have {}", given->json().size(), kMostBiases));
  }
  std::map<int32_t, double> biases;
  for (const auto& [key, value] : given->json().items()) {
    int32_t id = -1;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || id < 0 || id >= vocabulary) {
      fields.fail("logit_bias",
                  fmt::format("has the key {} but keys are ids from 0 to {}", shown_json(key), vocabulary - 1));
    }
    biases[id] = given->number(key, {-100, 100}).value_or(0);
  }
  return biases;
}

}  // namespace

std::vector<int32_t> read_ids(const Fields& fields, std::string_view name, const OrderedJson& list,
                              int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (const OrderedJson& one : list) {
    const bool whole = one.is_number_integer() && (!one.is_number_unsigned() || one.get<uint64_t>() < INT32_MAX);
    const int64_t id = whole ? one.get<int64_t>() : -1;
    if (id < 0 || id >= vocabulary) {
      fields.fail(name,
                  fmt::format("has {} where the id of a token stands, from 0 to {}", shown_json(one), vocabulary - 1));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

GenerationRequest read_generation(const Fields& fields, const ServedModel& model,
                                  const std::vector<std::string_view>& max_names, Budget& budget) {
  constexpr int64_t kWhole = INT32_MAX;
  GenerationRequest request;
  const GenerationDefaults& defaults = model.model().defaults();
  TextChoices& c = request.choices;
  c.temperature = fields.number("temperature", {0, 100});
  // As OpenAI has it a text is drawn unless the request asks for 0.
  if (!c.temperature) c.temperature = defaults.temperature.value_or(1);
  c.top_p = fields.number("top_p", {0, 1});
  c.min_p = fields.number("min_p", {0, 1});
  c.typical_p = fields.number("typical_p", {0, 1});
  c.top_k = fields.whole("top_k", {-1, kWhole});
  if (c.top_k == -1) c.top_k = 0;
  c.repetition_penalty = fields.number("repetition_penalty", {0.01, 100});
  c.presence_penalty = fields.number("presence_penalty", {-2, 2});
  c.frequency_penalty = fields.number("frequency_penalty", {-2, 2});
  c.logit_bias = read_biases(fields, model.model().spec().vocabulary);
  c.stop = read_stops(fields);
  const std::optional<int64_t> seed = fields.whole("seed", {INT64_MIN, INT64_MAX});
  c.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  for (const std::string_view name : max_names) {
    const std::optional<int64_t> most = fields.whole(name, {1, kMostNewTokens});
    if (most && !c.max_new) c.max_new = most;
  }
  request.n = fields.whole("n", {1, model.room().slots}).value_or(1);
  request.stream = fields.flag("stream").value_or(false);
  if (const std::optional<Fields> options = fields.object("stream_options")) {
    if (!request.stream) fields.fail("stream_options", "is only for streams: set stream to true");
    request.include_usage = options->flag("include_usage").value_or(false);
  }
  if (const std::optional<Fields> format = fields.object("response_format")) {
    request.constraint = constraint_of(*format, "response_format", model, budget);
  }
  if (const std::optional<Fields> look = fields.object("look")) {
    request.look = read_look(*look, model.model(), model.room().look);
  }
  return request;
}

void check_prompt_length(const GenerationPrompt& prompt, const ServedModel& model, std::string_view field) {
  const int64_t length = std::ssize(prompt.ids);
  if (length > 0 && length < model.context()) return;
  if (length == 0) throw ApiError(400, fmt::format("{} has no tokens", field), std::string(field));
  ApiError error(400,
                 fmt::format("{} has {} tokens, but this model has a context of {}, and at least one is to be written",
                             field, length, model.context()),
                 std::string(field));
  error.code = "context_length_exceeded";
  error.more = {{"prompt_tokens", length}, {"max", model.context() - 1}};
  throw error;
}

void check_text_length(const Tokenizer& tokenizer, std::string_view text, int64_t max_tokens, std::string_view field,
                       Budget& budget) {
  constexpr int64_t kSlack = 64;  // tokens that the cut may add, or the end of the text join
  for (size_t bytes = size_t{64} << 10; bytes < text.size(); bytes *= 2) {
    budget.spend(tokenizing_steps(bytes));
    size_t end = bytes;
    while (end > 0 && is_utf8_continuation(text[end])) --end;
    const int64_t tokens = std::ssize(tokenizer.encode(text.substr(0, end), {.add_specials = false}));
    if (tokens <= max_tokens + kSlack) continue;
    ApiError error(
        400,
        fmt::format("{} has a text of {} bytes; the first {} of them are {} tokens already, but this model reads {}",
                    field, text.size(), end, tokens, max_tokens),
        std::string(field));
    error.code = "context_length_exceeded";
    error.more = {{"prompt_tokens", tokens}, {"max", max_tokens}};
    throw error;
  }
  budget.spend(tokenizing_steps(text.size()));
}

GenerationRequest read_completion(const Fields& fields, const ServedModel& model, Budget& budget) {
  constexpr int64_t kUsualNew = 16;  // as OpenAI's
  GenerationRequest request = read_generation(fields, model, {"max_tokens"}, budget);
  if (!request.choices.max_new) request.choices.max_new = kUsualNew;
  request.logprobs = fields.whole("logprobs", {0, kMostTopLogprobs}).value_or(-1);
  request.echo = fields.flag("echo").value_or(false);
  if (request.echo && request.logprobs >= 0) fields.fail("echo", "does not go with logprobs here");
  const std::optional<int64_t> best_of = fields.whole("best_of", {1, model.room().slots});
  if (best_of && *best_of != request.n) fields.fail("best_of", "is supported only where it equals n");
  if (!fields.text("suffix", {0, kMostTextBytes}).value_or("").empty()) {
    fields.fail("suffix", "is not supported: this server continues texts");
  }
  const OrderedJson* prompt = fields.find("prompt");
  if (prompt == nullptr) fields.fail("prompt", "is missing: it is a string, a list of strings, or ids");
  const Tokenizer& tokenizer = model.model().tokenizer();
  const int64_t vocabulary = model.model().spec().vocabulary;
  const auto add_text = [&](const std::string& text) {
    check_text_length(tokenizer, text, model.context(), "prompt", budget);
    request.prompts.push_back({.ids = prompt_ids(tokenizer, model.model().spec(), text), .text = text});
  };
  const auto add_ids = [&](const OrderedJson& list) {
    std::vector<int32_t> ids = read_ids(fields, "prompt", list, vocabulary);
    std::vector<int32_t> known = ids;
    std::erase_if(known, [&](int32_t id) { return !tokenizer.has(id); });
    request.prompts.push_back({.ids = std::move(ids), .text = tokenizer.decode(known, {.skip_specials = true})});
  };
  if (prompt->is_string()) {
    add_text(prompt->get<std::string>());
  } else if (!prompt->is_array() || prompt->empty()) {
    fields.fail("prompt", "must be a string, a list of strings, or ids");
  } else if (prompt->front().is_number()) {
    add_ids(*prompt);
  } else {
    for (const OrderedJson& one : *fields.list("prompt", {1, kMostPrompts})) {
      if (one.is_string()) {
        add_text(one.get<std::string>());
      } else if (one.is_array()) {
        add_ids(one);
      } else {
        fields.fail("prompt", "has entries that are neither strings nor lists of ids");
      }
    }
  }
  for (const GenerationPrompt& one : request.prompts) check_prompt_length(one, model, "prompt");
  return request;
}

}  // namespace qkv::server

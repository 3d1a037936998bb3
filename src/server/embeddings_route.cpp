// /v1/embeddings.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "server/requests/limits.h"
#include "server/routes.h"
#include "text/tokenizer/files/base64.h"

namespace qkv::server {
namespace {

// Little-endian floats.
std::string base64_of(std::span<const float> vector) {
  std::string bytes(vector.size_bytes(), '\0');
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  return encode_base64(bytes);
}

// The first numbers, scaled to length 1 again.
void shorten(std::vector<float>& vector, int64_t dimensions) {
  if (std::cmp_greater_equal(dimensions, vector.size())) return;
  vector.resize(static_cast<size_t>(dimensions));
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  for (float& x : vector) x = square > 0 ? static_cast<float>(static_cast<double>(x) / std::sqrt(square)) : 0;
}

struct EmbeddingRequest {
  std::vector<std::vector<int32_t>> texts;
  Pooling pooling = Pooling::mean;
  int64_t dimensions = 0, tokens = 0;
  bool base64 = false;
};

EmbeddingRequest read_embedding(const Fields& fields, ServedModel& model, Budget& budget) {
  EmbeddingRequest request{.pooling = usual_pooling(model.model().spec())};
  const int64_t width = model.model().spec().width;
  request.dimensions = fields.whole("dimensions", {1, width}).value_or(width);
  request.base64 = fields.word("encoding_format", {"float", "base64"}).value_or("float") == "base64";
  if (const auto word = fields.word("pooling", {"mean", "first", "last"})) {
    request.pooling = *word == "mean" ? Pooling::mean : *word == "first" ? Pooling::first : Pooling::last;
  }
  const OrderedJson* input = fields.find("input");
  if (input == nullptr) fields.fail("input", "is missing: it is a string, a list of strings, or ids");
  const Tokenizer& tokenizer = model.model().tokenizer();
  const int64_t vocabulary = model.model().spec().vocabulary;
  const auto add = [&](std::vector<int32_t> ids) {
    if (ids.empty()) fields.fail("input", "has a text without tokens");
    if (std::ssize(ids) > model.embeddings().most_tokens()) {
      ApiError error(400,
                     fmt::format("input has a text of {} tokens, but this model turns at most {} into a vector",
                                 ids.size(), model.embeddings().most_tokens()),
                     "input");
      error.code = "context_length_exceeded";
      throw error;
    }
    request.tokens += std::ssize(ids);
    request.texts.push_back(std::move(ids));
  };
  const auto encoded = [&](const std::string& text) {
    check_text_length(tokenizer, text, model.embeddings().most_tokens(), "input", budget);
    return tokenizer.encode(text);
  };
  if (input->is_string()) {
    add(encoded(input->get_ref<const std::string&>()));
  } else if (!input->is_array() || input->empty()) {
    fields.fail("input", "must be a string, a list of strings, or ids");
  } else if (input->front().is_number()) {
    add(read_ids(fields, "input", *input, vocabulary));
  } else {
    for (const OrderedJson& one : *fields.list("input", {1, kMostEmbeddingTexts})) {
      if (one.is_string()) {
        add(encoded(one.get_ref<const std::string&>()));
      } else if (one.is_array()) {
        add(read_ids(fields, "input", one, vocabulary));
      } else {
        fields.fail("input", "has entries that are neither strings nor lists of ids");
      }
    }
  }
  return request;
}

}  // namespace

void answer_embeddings(const Fields& fields, ServedModel& model, const RouteContext& route) {
  refuse_look(fields);
  EmbeddingRequest request = read_embedding(fields, model, route.budget);
  const int64_t tokens = request.tokens, texts = std::ssize(request.texts);
  EmbeddingQueue::Job job{.texts = std::move(request.texts), .pooling = request.pooling};
  job.on_end = [exchange = route.exchange, writer = route.writer, metrics = route.metrics, name = model.name(), tokens,
                texts, dimensions = request.dimensions,
                base64 = request.base64](Vectors vectors, std::exception_ptr failed) {
    writer->add([=, made = std::make_shared<Vectors>(std::move(vectors))] {
      try {
        if (failed) std::rethrow_exception(failed);
        OrderedJson data = OrderedJson::array();
        for (std::vector<float>& vector : *made) {
          shorten(vector, dimensions);
          data.push_back({{"object", "embedding"},
                          {"index", data.size()},
                          {"embedding", base64 ? OrderedJson(base64_of(vector)) : OrderedJson(vector)}});
        }
        metrics->tokens(name, tokens, 0);
        exchange->note(fmt::format("model={} prompt={} texts={}", name, tokens, texts));
        exchange->respond(json_response({{"object", "list"},
                                         {"data", std::move(data)},
                                         {"model", name},
                                         {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}}));
      } catch (...) {
        exchange->respond(server_fault_of(std::current_exception()).response());
      }
    });
  };
  const EmbeddingQueue::Ticket ticket = model.embeddings().submit(std::move(job));
  route.exchange->when_gone([&model, ticket, metrics = route.metrics, wake = route.wake] {
    model.embeddings().cancel(ticket);
    metrics->cancelled();
    wake();
  });
  route.wake();
}

}  // namespace qkv::server

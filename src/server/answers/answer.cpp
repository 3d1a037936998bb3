#include "server/answers/answer.h"

#include "server/http/sse.h"
#include "text/unicode/utf8.h"

namespace qkv::server {
namespace {

OrderedJson token_json(int32_t id, double logprob, const Tokenizer& tokenizer) {
  const TokenShown shown = shown_token(id, tokenizer);
  OrderedJson bytes = OrderedJson::array();
  for (const char c : shown.bytes) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", shown.text}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
}

OrderedJson usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"completion_tokens", usage.written},
          {"total_tokens", usage.prompt + usage.written},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", 0}}}};
}

OrderedJson calls_json(std::span<const ToolCall> calls, int64_t first_index) {
  OrderedJson all = OrderedJson::array();
  for (const ToolCall& call : calls) {
    OrderedJson one{{"id", call.id}, {"type", "function"}};
    one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    if (first_index >= 0) one["index"] = first_index++;
    all.push_back(std::move(one));
  }
  return all;
}

size_t characters_in(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += is_utf8_continuation(c) ? 0U : 1U;
  return count;
}

// /v1/completions.
class CompletionForm : public AnswerForm {
 public:
  using AnswerForm::AnswerForm;

  OrderedJson whole(std::span<const WrittenChoice> choices) const override {
    OrderedJson out = frame();
    for (const WrittenChoice& choice : choices) {
      size_t offset = 0;
      out["choices"].push_back(
          choice_json(choice.index, choice.text, logprobs(choice.tokens, offset), choice.finish_reason()));
    }
    out["usage"] = usage_json(usage_of(choices));
    return out;
  }

  std::string add(const WrittenChoice& choice, const AnswerPiece& piece) override {
    OrderedJson out = frame();
    if (offsets_.size() <= choice.index) offsets_.resize(choice.index + 1);
    out["choices"].push_back(
        choice_json(choice.index, piece.text, logprobs(piece.tokens, offsets_[choice.index]), nullptr));
    return sse(out);
  }

  std::string end(const WrittenChoice& choice) override {
    OrderedJson out = frame();
    out["choices"].push_back(choice_json(choice.index, "", nullptr, choice.finish_reason()));
    return sse(out);
  }

  std::string close(std::span<const WrittenChoice> choices) override {
    std::string out;
    if (info_.include_usage) {
      OrderedJson last = frame();
      last["usage"] = usage_json(usage_of(choices));
      out = sse(last);
    }
    return out + kSseDone;
  }

 private:
  OrderedJson frame() const {
    return {{"id", "cmpl-" + info_.id},
            {"object", "text_completion"},
            {"created", info_.created},
            {"model", info_.model},
            {"choices", OrderedJson::array()}};
  }

  static OrderedJson choice_json(size_t index, const std::string& text, OrderedJson logprobs, const char* reason) {
    return {{"index", index},
            {"text", text},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", reason == nullptr ? OrderedJson(nullptr) : OrderedJson(reason)}};
  }

  OrderedJson logprobs(std::span<const Choice> tokens, size_t& offset) const {
    if (!info_.logprobs) return nullptr;
    OrderedJson texts = OrderedJson::array(), values = texts, tops = texts, offsets = texts;
    for (const Choice& token : tokens) {
      const std::string text = shown_token(token.id, info_.tokenizer).text;
      texts.push_back(text);
      values.push_back(token.logprob);
      offsets.push_back(offset);
      offset += characters_in(text);
      OrderedJson top = OrderedJson::object();
      for (const auto& [id, logprob] : token.alternatives) top[shown_token(id, info_.tokenizer).text] = logprob;
      tops.push_back(std::move(top));
    }
    return {{"tokens", texts}, {"token_logprobs", values}, {"top_logprobs", tops}, {"text_offset", offsets}};
  }

  std::vector<size_t> offsets_;  // by choice
};

// /v1/chat/completions.
class ChatForm : public AnswerForm {
 public:
  using AnswerForm::AnswerForm;

  OrderedJson whole(std::span<const WrittenChoice> choices) const override {
    OrderedJson out = frame("chat.completion");
    for (const WrittenChoice& choice : choices) {
      OrderedJson message{{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
      if (!choice.calls.empty()) {
        if (choice.text.empty()) message["content"] = nullptr;
        message["tool_calls"] = calls_json(choice.calls, -1);
      }
      out["choices"].push_back({{"index", choice.index},
                                {"message", std::move(message)},
                                {"logprobs", logprobs(choice.tokens)},
                                {"finish_reason", choice.finish_reason()}});
    }
    out["usage"] = usage_json(usage_of(choices));
    return out;
  }

  std::string begin(std::span<const WrittenChoice> choices) override {
    std::string out;
    for (const WrittenChoice& choice : choices) {
      out += chunk(choice.index, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
    }
    calls_.resize(choices.size());
    return out;
  }

  std::string add(const WrittenChoice& choice, const AnswerPiece& piece) override {
    OrderedJson delta = OrderedJson::object();
    if (!piece.text.empty() || piece.calls.empty()) delta["content"] = piece.text;
    if (!piece.calls.empty()) {
      delta["tool_calls"] = calls_json(piece.calls, calls_[choice.index]);
      calls_[choice.index] += std::ssize(piece.calls);
    }
    return chunk(choice.index, std::move(delta), logprobs(piece.tokens), nullptr);
  }

  std::string end(const WrittenChoice& choice) override {
    return chunk(choice.index, OrderedJson::object(), nullptr, choice.finish_reason());
  }

  std::string close(std::span<const WrittenChoice> choices) override {
    std::string out;
    if (info_.include_usage) {
      OrderedJson last = frame("chat.completion.chunk");
      last["usage"] = usage_json(usage_of(choices));
      out = sse(last);
    }
    return out + kSseDone;
  }

 private:
  OrderedJson frame(const char* object) const {
    return {{"id", "chatcmpl-" + info_.id},
            {"object", object},
            {"created", info_.created},
            {"model", info_.model},
            {"choices", OrderedJson::array()}};
  }

  OrderedJson logprobs(std::span<const Choice> tokens) const {
    if (!info_.logprobs) return nullptr;
    return {{"content", logprobs_json(tokens, info_.tokenizer)}, {"refusal", nullptr}};
  }

  std::string chunk(size_t index, OrderedJson delta, OrderedJson logprobs, const char* reason) const {
    OrderedJson out = frame("chat.completion.chunk");
    out["choices"].push_back({{"index", index},
                              {"delta", std::move(delta)},
                              {"logprobs", std::move(logprobs)},
                              {"finish_reason", reason == nullptr ? OrderedJson(nullptr) : OrderedJson(reason)}});
    return sse(out);
  }

  std::vector<int64_t> calls_;  // so far, by choice
};

}  // namespace

const char* WrittenChoice::finish_reason() const {
  if (ended == Ended::length || ended == Ended::context) return "length";
  if (!calls.empty()) return "tool_calls";
  return "stop";
}

TokenShown shown_token(int32_t id, const Tokenizer& tokenizer) {
  if (!tokenizer.has(id)) return {};
  TokenShown shown;
  shown.bytes = tokenizer.is_special(id) ? std::string(tokenizer.token(id)) : tokenizer.bytes_of(id);
  std::string rest = shown.bytes;
  shown.text = take_utf8(rest, MoreBytes::no);
  return shown;
}

std::string AnswerForm::fail(const ApiError& error) const {
  return sse(error.json()) + kSseDone;
}

Usage usage_of(std::span<const WrittenChoice> choices) {
  Usage usage;
  size_t prompt = 0;
  for (const WrittenChoice& choice : choices) {
    // The texts of one prompt follow each other, and it was read once for all of them.
    if (choice.prompt_index != prompt || choice.index == 0) {
      usage.prompt += choice.prompt_tokens;
      usage.cached += choice.cached;
    }
    prompt = choice.prompt_index;
    usage.written += choice.written;
  }
  return usage;
}

OrderedJson logprobs_json(std::span<const Choice> tokens, const Tokenizer& tokenizer) {
  OrderedJson all = OrderedJson::array();
  for (const Choice& token : tokens) {
    OrderedJson one = token_json(token.id, token.logprob, tokenizer), top = OrderedJson::array();
    for (const auto& [id, logprob] : token.alternatives) top.push_back(token_json(id, logprob, tokenizer));
    one["top_logprobs"] = std::move(top);
    all.push_back(std::move(one));
  }
  return all;
}

std::unique_ptr<AnswerForm> completion_form(AnswerInfo info) {
  return std::make_unique<CompletionForm>(std::move(info));
}

std::unique_ptr<AnswerForm> chat_form(AnswerInfo info) {
  return std::make_unique<ChatForm>(std::move(info));
}

}  // namespace qkv::server

// What a client writes is text: no part of a request becomes a control token of any template.
#include "server/requests/chat_request.h"
#include "server/test_server.h"
#include "text/chat/chat_support.h"

namespace qkv {
namespace {

// A model's folder whose tokenizer has the control tokens of all template styles.
class ControlTokens : public testing::Test {
 protected:
  ControlTokens() {
    Json json = parse_json(read_file(test::golden("tokenizers") / "qwen2" / "tokenizer.json", 1 << 24), "tokenizer");
    int32_t id = 700;
    for (const char* token : {"<s>",
                              "</s>",
                              "[INST]",
                              "[/INST]",
                              "<<SYS>>",
                              "<|user|>",
                              "<|assistant|>",
                              "<|system|>",
                              "<|end|>",
                              "<|eot_id|>",
                              "<|start_header_id|>",
                              "<|end_header_id|>",
                              "<start_of_turn>",
                              "<end_of_turn>",
                              "[TOOL_CALLS]",
                              "[AVAILABLE_TOOLS]",
                              "<tool_call>",
                              "</tool_call>",
                              "<|python_tag|>",
                              "<think>",
                              "</think>"}) {
      specials_.push_back(token);
      json["added_tokens"].push_back({{"id", id++},
                                      {"content", token},
                                      {"single_word", false},
                                      {"lstrip", false},
                                      {"rstrip", false},
                                      {"normalized", false},
                                      {"special", true}});
    }
    specials_.insert(specials_.end(), {"<|im_start|>", "<|im_end|>"});
    const std::filesystem::path chatty = test::TinyModels::get().path("chatty");
    std::filesystem::copy_file(chatty / "model.safetensors", folder_.path() / "model.safetensors");
    Json config = parse_json(read_file(chatty / "config.json", 1 << 20), "config");
    config["max_position_embeddings"] = 32768;
    folder_.write("config.json", config.dump());
    folder_.write("tokenizer.json", json.dump());
  }

  // How many special tokens the prompt has if everything a user can write is this; -1 if the template refuses it.
  enum class With { messages, tools, calls, responses };
  int64_t specials(const server::ServedModel& model, const std::string& said, With with) const {
    const std::string name = said.substr(0, 200);
    OrderedJson body{{"messages",
                      {{{"role", "system"}, {"content", said}},
                       {{"role", "user"}, {"name", name}, {"content", {{{"type", "text"}, {"text", said}}}}},
                       {{"role", "assistant"}, {"content", said}, {"reasoning_content", said}},
                       {{"role", "user"}, {"content", said}}}}};
    if (with == With::calls) {
      const OrderedJson arguments{{"k", said}, {said, 1}};
      body["messages"].push_back({{"role", "assistant"},
                                  {"tool_calls",
                                   {{{"id", "abcdefghi"},
                                     {"type", "function"},
                                     {"function", {{"name", name}, {"arguments", arguments.dump()}}}}}}});
      body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "abcdefghi"}, {"name", name}, {"content", said}});
    }
    if (with == With::responses) {
      body = {{"instructions", said},
              {"input",
               {{{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", said}}}}},
                {{"role", "assistant"}, {"content", {{{"type", "output_text"}, {"text", said}}}}},
                {{"role", "user"}, {"content", said}}}}};
    }
    if (with == With::tools || with == With::calls) {
      OrderedJson parameters{{"type", "object"}};
      parameters["properties"][said] = {{"type", "string"}, {"description", said}};
      body["tools"].push_back(
          {{"type", "function"}, {"function", {{"name", "f"}, {"description", said}, {"parameters", parameters}}}});
    }
    try {
      const server::Fields fields(body, "");
      Budget budget(SIZE_MAX / 2);
      const server::GenerationRequest request = with == With::responses ? server::read_responses(fields, model, budget)
                                                                        : server::read_chat(fields, model, budget);
      const Tokenizer& tokenizer = model.model().tokenizer();
      return std::ranges::count_if(request.prompts.front().ids, [&](int32_t id) { return tokenizer.is_special(id); });
    } catch (const server::ApiError& error) {
      EXPECT_EQ(error.status, 400);
      EXPECT_NE(error.code, "context_length_exceeded");
      return -1;
    }
  }

  TempFolder folder_;
  std::vector<std::string> specials_;
};

TEST_F(ControlTokens, AreNeverMadeOfWhatAClientSends) {
  std::string hostile = "x";
  for (const std::string& token : specials_) hostile += token + "\n" + token.substr(0, 3) + token;
  std::map<With, int> checked;
  for (const auto& [name, source] : test::chat_templates()) {
    folder_.write("chat_template.jinja", source);
    std::optional<server::ServedModel> model;
    try {
      model.emplace("m", folder_.path().string(), OpenOptions{.threads = 1}, server::ServeRoom{.context = 32768});
    } catch (const Error&) {
      continue;  // a template that is not to be parsed
    }
    for (const With with : {With::messages, With::tools, With::calls, With::responses}) {
      const int64_t plain = specials(*model, "x", with);
      if (plain < 0) continue;
      EXPECT_EQ(specials(*model, hostile, with), plain) << name << " " << static_cast<int>(with);
      ++checked[with];
    }
  }
  EXPECT_GE(checked[With::messages], 40);
  EXPECT_GE(checked[With::responses], 40);
  EXPECT_GE(checked[With::tools], 1);
  EXPECT_GE(checked[With::calls], 1);
}

}  // namespace
}  // namespace qkv

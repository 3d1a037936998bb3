// qkv tokenize: text as a model sees it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "commands.h"
#include "text/tokenizer.h"
#include "text/tokenizer_verify.h"

namespace qkv::app {
namespace {

constexpr size_t kLargestVectors = 512 << 20;

struct Request {
  std::string tokenizer, text, vectors;
  bool has_text = false, ids = false, json = false, plain = false;
};

std::string shown(const Json& value) {
  constexpr size_t kShown = 600;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShown) text = std::string(text, 0, kShown) + "...";
  return text;
}

void verify(const Tokenizer& tokenizer, const Request& request) {
  const std::string text = read_file(request.vectors, kLargestVectors);
  const Json vectors = parse_json(text, request.vectors, {.bytes = kLargestVectors});
  const TokenizerVerdict verdict = verify_tokenizer(tokenizer, vectors, request.vectors);
  if (request.json) {
    Json differences = Json::array();
    for (const TokenizerDifference& d : verdict.differences) {
      differences.push_back(
          {{"index", d.index}, {"text", d.text}, {"field", d.field}, {"expected", d.expected}, {"got", d.got}});
    }
    const Json out{{"cases", verdict.cases}, {"equal", verdict.equal}, {"differences", differences}};
    std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    for (const TokenizerDifference& d : verdict.differences) {
      std::cout << fmt::format("case {}: {} of {}\n  expected {}\n  got      {}\n", d.index, d.field, printable(d.text),
                               shown(d.expected), shown(d.got));
    }
    std::cout << fmt::format("{} of {} equal\n", verdict.equal, verdict.cases);
  }
  if (verdict.equal != verdict.cases) throw AnswerNo{};
}

void print_ids(const std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) std::cout << (i > 0 ? " " : "") << ids[i];
  std::cout << '\n';
}

void run(const Request& request) {
  const Tokenizer tokenizer = Tokenizer::load(request.tokenizer);
  if (!request.vectors.empty()) return verify(tokenizer, request);
  std::string text = request.text;
  if (!request.has_text || text == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  if (request.ids) return print_ids(tokenizer.encode(text, {.add_specials = !request.plain}));
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Text as a model sees it: tokens and their ids");
  const auto request = std::make_shared<Request>();  // lives as long as the callback
  command->add_option("tokenizer", request->tokenizer, "tokenizer.json, an older tokenizer file, or a model's folder")
      ->required();
  CLI::Option* text = command->add_option("text", request->text, "The text; standard input if missing or -");
  command->add_flag("--ids", request->ids, "Print the ids only");
  command->add_flag("--json", request->json, "Print it as JSON");
  command->add_flag("--plain", request->plain, "Without the special tokens around the text");
  command->add_option("--verify", request->vectors, "Compare with the vectors in this file: exit 1 if any differ");
  command->footer(R"(Examples:
  qkv tokenize gpt2/tokenizer.json "Hello, world"
  qkv tokenize qwen2/ --ids - < text.txt
  qkv tokenize gpt2/tokenizer.json --verify gpt2/vectors.json)");
  command->callback([request, text] {
    request->has_text = text->count() > 0;
    run(*request);
  });
}

}  // namespace qkv::app

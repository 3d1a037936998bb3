// qkv tokenize: text as a model sees it.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "api/inside.h"
#include "api/tokenizers.h"
#include "base/display_width.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/standard_input.h"
#include "common/terminal.h"
#include "text/tokenizer/display_spans.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv::app {
namespace {

struct TokenizeRequest {
  std::string tokenizer, text;
  bool has_text = false, ids = false, spans = false, json = false, plain = false;
};

void print_tokenize_json(const Json& json) {
  std::cout << json_text(json) << '\n';
}

std::string ids_of(const DisplaySpan& span, const std::vector<int32_t>& ids) {
  return fmt::format("{}",
                     fmt::join(ids.begin() + static_cast<std::ptrdiff_t>(span.first_token),
                               ids.begin() + static_cast<std::ptrdiff_t>(span.first_token + span.token_count), " "));
}

// Control characters as their pictures, so that a line break does not break the line; others that steer, escaped.
std::string visible(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += "\xe2\x90";
      out += static_cast<char>(0x80 + byte);
    } else if (byte == 0x7f) {
      out += "\xe2\x90\xa1";
    } else {
      out += c;
    }
  }
  return escaped(out);
}

// Each span in brackets, or on a coloured ground on a terminal, and its ids below.
void print_tokenize_rows(const DisplaySpans& all, const std::vector<int32_t>& ids, bool colour) {
  const int columns = terminal_columns();
  std::string above, below;
  int column = 0;
  const auto flush = [&] {
    if (column > 0) std::cout << above << '\n' << below << '\n';
    above.clear();
    below.clear();
    column = 0;
  };
  bool odd = false;
  for (const DisplaySpan& span : all.spans) {
    const std::string text = colour ? visible(span.text) : "[" + visible(span.text) + "]", under = ids_of(span, ids);
    const int text_width = display_width(text), width = std::max(text_width, display_width(under)) + 1;
    if (column > 0 && column + width > columns) flush();
    above += colour ? terminal_code(odd ? "[30;46m" : "[30;43m") + text + terminal_code("[0m") : text;
    above += std::string(static_cast<size_t>(width - text_width), ' ');
    below += under + std::string(static_cast<size_t>(width - display_width(under)), ' ');
    column += width;
    odd = !odd;
  }
  flush();
  std::cout << fmt::format("{} tokens, {} bytes\n", ids.size(), all.text.size());
}

void print_spans(const DisplaySpans& all, const std::vector<int32_t>& ids) {
  for (const DisplaySpan& span : all.spans) {
    std::cout << fmt::format("{:>6} {:>6}  {}  {}\n", span.begin, span.end, "[" + visible(span.text) + "]",
                             ids_of(span, ids));
  }
}

void print_spans_json(const Tokenizer& tokenizer, const DisplaySpans& all, const std::vector<int32_t>& ids) {
  Json spans = Json::array();
  for (const DisplaySpan& span : all.spans) {
    Json tokens = Json::array();
    for (size_t i = span.first_token; i < span.first_token + span.token_count; ++i) {
      tokens.push_back({{"id", ids[i]}, {"token", tokenizer.token(ids[i])}, {"continues", all.continues(i)}});
    }
    spans.push_back({{"text", span.text}, {"begin", span.begin}, {"end", span.end}, {"tokens", tokens}});
  }
  print_tokenize_json({{"ids", ids}, {"spans", spans}});
}

void run_tokenize(const TokenizeRequest& request) {
  const api::Tokenizer library(request.tokenizer);
  const Tokenizer& tokenizer = inside(library);
  std::string text = request.text;
  if (!request.has_text || text == "-") {
    text = read_standard_input();
  }
  const std::vector<int32_t> ids = library.encode(text, request.plain);
  if (request.ids) {
    request.json ? print_tokenize_json(ids) : void(std::cout << fmt::format("{}\n", fmt::join(ids, " ")));
    return;
  }
  const DisplaySpans spans = display_spans(tokenizer, ids);
  if (request.json) return print_spans_json(tokenizer, spans, ids);
  request.spans ? print_spans(spans, ids) : print_tokenize_rows(spans, ids, may_colour(STDOUT_FILENO));
}

}  // namespace

void add_tokenize(Command app) {
  const Command command = app.add_command("tokenize", "Text as a model sees it: tokens and their ids");
  const auto request = std::make_shared<TokenizeRequest>();  // lives as long as the callback
  command
      .add_model("TOKENIZER", request->tokenizer,
                 "A tokenizer's file, a folder with one, as a model's, or a built-in model (qkv models)")
      .required();
  const Option text =
      command.add_option("TEXT", request->text, "The text; standard input, at most 64 MiB, if missing or -");
  command.add_flag("--ids", request->ids, "Print the ids only");
  command.add_flag("--spans", request->spans, "Print a line per span: its bytes, its text, its ids");
  command.add_flag("--json", request->json, "Print JSON, and nothing else");
  command.add_flag("--plain", request->plain, "Without the special tokens around the text");
  command.footer(R"(A character that several tokens share is one span, with all of their ids.

Examples:
  qkv tokenize world "Hello, 世界"
  qkv tokenize gpt2/tokenizer.json "Hello, 世界"
  qkv tokenize qwen2/ --ids - < text.txt
  qkv tokenize qwen2/ --spans --json "👍🏽")");
  command.callback([request, text] {
    request->has_text = text.given();
    run_tokenize(*request);
  });
}

}  // namespace qkv::app

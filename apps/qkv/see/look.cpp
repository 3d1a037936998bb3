// qkv look: one text through a model, and everything that happens inside.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "api/looking.h"
#include "base/error.h"
#include "base/progress.h"
#include "common/commands.h"
#include "common/drawing.h"
#include "common/model_options.h"
#include "common/reports.h"
#include "common/token_ids.h"
#include "see/look_view.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

constexpr const char* kLookExamples =
    R"(Tokens, layers and heads are counted from 0. A model that translates reads TEXT and has written --target; without one the decoder has only its start token. A text of
up to 512 tokens is shown whole; of a longer one the rows around --token.

Examples:
  qkv look MODEL "The cat sat on the"                    guesses layer by layer, and attention maps
  qkv look MODEL "The cat sat on the" --token 2          one token's path, in numbers
  qkv look MODEL "床前明月光" --layer 3 --head 7          one head, large
  qkv look MODEL "The cat sat" --layer 3                 all heads of a layer
  qkv look T5 "The cat sat." --target "Die Katze saß."   both stacks; heads are E0H1, L0H1 and X0H1
  qkv look T5 "The cat sat." --target "Die Katze" --head X0H1
  qkv look MODEL "The cat sat" --html cat.html           one page to open offline
  qkv look MODEL "The cat sat" --npz cat.npz             q, k, v, z, probabilities, stream and logits for NumPy
  qkv look MODEL --ids "1 403 407"                       token ids, as they are; needs no tokenizer)";

struct LookArguments {
  ModelOptions model;
  GivenText given;
  std::string head, npz, html;
  ReportOptions report;
  int64_t token = -1, layer = -1;
};

// A head by its name, or by its number in --layer.
std::optional<HeadId> wanted_head(const ModelSpec& spec, const LookArguments& options) {
  if (options.head.empty()) return std::nullopt;
  std::string name = options.head;
  if (name.find_first_not_of("0123456789") == std::string::npos) {
    QKV_CHECK(options.layer >= 0, "--head ", name, " of which layer?", Hint("give --layer too, or a name as L3H7"));
    name = fmt::format("L{}H{}", options.layer, name);
  }
  const std::vector<HeadId> heads = parse_heads(spec, name);
  QKV_CHECK(heads.size() == 1, "--head ", name, " are ", heads.size(), " heads", Hint("one is shown at a time: L3H7"));
  return heads.front();
}

void check_layer(const ModelSpec& spec, int64_t layer) {
  const int64_t layers = std::ssize(spec.main_stack().layers);
  QKV_CHECK(layer < layers, "no layer ", layer, ": this ", spec.family, " has layers 0 to ", layers - 1,
            Hint("layers are counted from 0"));
}

void write_files(const LookArguments& options, const api::Looked& seen) {
  if (!options.npz.empty()) {
    seen.save_npz(options.npz);
    std::cerr << "wrote " << options.npz << '\n';
  }
  if (options.report.wanted()) write_report(options.report, seen.json());
  if (!options.html.empty()) write_out(options.html, seen.html());
  for (const std::string& file : {options.report.out, options.html}) {
    if (!file.empty() && file != "-") std::cerr << "wrote " << file << '\n';
  }
}

void draw(const LookArguments& options, const LookedAt& at, const std::optional<HeadId>& head) {
  const LookView view{.at = at, .out = std::cout, .columns = std::max(terminal_columns(), 40)};
  draw_tokens(view);
  if (head) return draw_map(view, *head);
  if (options.layer < 0) draw_ladder(view);
  if (options.token >= 0 || options.layer >= 0) {
    draw_story(view, options.layer);
  } else {
    draw_path(view);
  }
  draw_wall(view, options.layer);
}

void look(const LookArguments& options) {
  QKV_CHECK(!options.given.text.empty(), "the text is empty", Hint("give a few words to look at"));
  QKV_CHECK(!options.report.json || options.html != "-", "--json and --html - both go to standard output",
            Hint("give --html a file"));
  for (const std::string& text : {options.given.text, options.given.target}) {
    QKV_CHECK(is_utf8(text), "the text is not UTF-8", Hint("convert it, for example with  iconv"));
  }
  const api::Model model = open_library(options.model);
  const OpenModel& open = looking_inside(model);
  check_layer(open.spec(), options.layer);
  const std::optional<HeadId> head = wanted_head(open.spec(), options);
  const bool has_source = open.spec().has_source();
  QKV_CHECK(has_source || options.given.target.empty(), "--target, but a ", open.spec().family, " continues its text",
            Hint("leave it out: only models that translate have a source and a target"));
  if (has_source && options.given.target.empty()) {
    std::cerr << "no --target: the decoder sees only the token it starts with\n";
  }
  std::optional<Progress> progress;
  const auto seen = api::look_inside(
      open, library_text(options.given),
      {.token = options.token, .logits = !options.npz.empty(), .climbing = [&](int64_t done, int64_t of) {
         if (!progress) progress.emplace("reading guesses", of);
         progress->update(done);
       }});
  progress.reset();
  if (!options.report.json && options.html != "-") draw(options, seen->at, head);
  write_files(options, api::Looked(seen));
}

}  // namespace

void add_look(Command app) {
  const Command command = app.add_command("look", "One text through a model: guesses, heads, one token's path");
  const auto options = std::make_shared<LookArguments>();  // lives as long as the callback
  add_model_options(command, options->model, ModelUse::looks);
  command.add_option("TEXT", options->given.text, "What it reads; for a model that translates, the source").required();
  command.add_option("--target TEXT", options->given.target, "What a model that translates has written so far");
  command.add_flag("--ids", options->given.ids, "TEXT and --target are token ids; needs no tokenizer");
  command.add_option("--token", options->token, "Show this token's path in full; otherwise the last one's, in short")
      .between(int64_t{0}, int64_t{1} << 30);
  command.add_option("--layer", options->layer, "One layer in full").between(0, 32767);
  command.add_option("--head HEAD", options->head,
                     "One head, large: its number in --layer, or a name, L3H7, E0H1, X0H1");
  add_report_options(command, options->report);
  command.add_output_file("--npz FILE", options->npz, "Write the arrays to a file, for NumPy");
  command.add_output_file("--html FILE", options->html, "Write one page that opens offline");
  command.footer(kLookExamples);
  command.callback([options] { look(*options); });
}

}  // namespace qkv::app

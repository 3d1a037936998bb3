// qkv data: text into token shards (pack), what they hold (stats, in data_stats.cpp).
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/thread_pool.h"
#include "common/commands.h"
#include "data/dataset.h"
#include "data/dataset_pack.h"
#include "data/dataset_tokenizer.h"

namespace qkv::app {
namespace {

constexpr const char* kPackExamples = R"(Formats:
  text    plain text; --document says where one document ends: at a blank line (default), at every line, or with the file
  jsonl   one JSON object per line, the text in --field; pairs with --source-field and --target-field
  tsv     pairs, source<TAB>target
All must be UTF-8. A share of the documents, chosen by a hash of their text, is kept for validation.
The folder must not exist; it appears when everything is written. docs/data.md describes what is in it.

Examples:
  qkv data pack --tokenizer gpt2/tokenizer.json --out shakespeare tinyshakespeare.txt
  zcat crawl.jsonl.gz | qkv data pack --tokenizer bytes --format jsonl --out crawl -
  qkv data pack --tokenizer en-zh.json --format tsv --split-validation 0.02 --out pairs en-zh.tsv
  qkv data stats pairs
  qkv verify pairs                        every byte against its checksum)";

struct PackCommand {
  std::string tokenizer, end_token, format = "text", document = "blank";
  PackOptions options{.files = {},
                      .out = {},
                      .source = {.cut_option = "--document", .field_option = "--field"},
                      .validation = 0.01,
                      .validation_option = "--split-validation"};
  bool json = false;
};

// The words of the command line, which has checked them.
SourceOptions source_of(const PackCommand& command) {
  static const std::map<std::string, DataFormat> kFormats{
      {"text", DataFormat::text}, {"jsonl", DataFormat::jsonl}, {"tsv", DataFormat::tsv}};
  static const std::map<std::string, DocumentCut> kCuts{
      {"line", DocumentCut::line}, {"blank", DocumentCut::blank_line}, {"file", DocumentCut::file}};
  SourceOptions source = command.options.source;
  source.format = kFormats.at(command.format);
  source.cut = kCuts.at(command.document);
  return source;
}

Packed pack_bytes(const PackOptions& options, ThreadPool& pool) {
  const auto encode = [](std::string_view text, std::vector<int32_t>& ids) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  };
  return pack_dataset(options, {.encode = encode, .vocabulary = 257, .fingerprint = "bytes", .end_token = 256}, pool);
}

Packed pack_tokens(const PackCommand& command, ThreadPool& pool) {
  const Tokenizer tokenizer = Tokenizer::load(command.tokenizer).without_truncation();
  DocumentTokens around = document_tokens(tokenizer);
  if (!command.end_token.empty()) {
    around.end = tokenizer.id_of(command.end_token);
    QKV_CHECK(around.end, tokenizer.what(), " has no token ", printable(command.end_token),
              Hint("--end-token must be in the vocabulary"));
  }
  if (!around.end) std::cerr << "note: the tokenizer names no end-of-text token; --end-token gives it one\n";
  const auto encode = [&](std::string_view text, std::vector<int32_t>& ids) {
    ids = tokenizer.encode(text, {.add_specials = false});
  };
  return pack_dataset(command.options,
                      {.encode = encode,
                       .vocabulary = tokenizer.vocab_size(),
                       .fingerprint = fingerprint(tokenizer),
                       .begin_token = around.begin,
                       .end_token = around.end},
                      pool);
}

void pack(PackCommand command) {
  command.options.source = source_of(command);
  ThreadPool pool;
  const Packed packed = command.tokenizer == "bytes" ? pack_bytes(command.options, pool) : pack_tokens(command, pool);
  const DatasetManifest& manifest = packed.manifest;
  if (command.json) {
    nlohmann::ordered_json out{{"out", command.options.out.string()}, {"left_out", packed.skipped}};
    for (const Split split : kSplits) {
      const SplitInfo& info = manifest.of(split);
      out[name_of(split)] = {{"documents", info.documents}, {"tokens", info.tokens}, {"text_bytes", info.text_bytes}};
    }
    std::cout << json_text(out) << '\n';
    return;
  }
  std::cout << command.options.out.string() << ":\n";
  for (const Split split : kSplits) {
    const SplitInfo& info = manifest.of(split);
    std::cout << fmt::format("  {:<11} {} {}, {} tokens", name_of(split), info.documents, name_of_documents(manifest),
                             info.tokens);
    if (info.tokens > 0) {
      std::cout << fmt::format(", {:.2f} bytes per token",
                               static_cast<double>(info.text_bytes) / static_cast<double>(info.tokens));
    }
    std::cout << '\n';
  }
  if (packed.skipped > 0) std::cout << fmt::format("  {} without text left out\n", packed.skipped);
}

void add_pack(Command data) {
  const Command command = data.add_command("pack", "Turn text, JSONL or TSV pairs into token shards");
  const auto all = std::make_shared<PackCommand>();  // lives as long as the callback
  PackOptions& options = all->options;
  command.add_option("FILE", options.files, "What to pack; - is standard input").required();
  command
      .add_tokenizer("--tokenizer TOKENIZER", all->tokenizer,
                     "A tokenizer's file or folder, or 'bytes' (256 bytes and an end)")
      .required();
  command.add_option("--end-token TOKEN", all->end_token,
                     "Put after every document; otherwise the tokenizer's end-of-text token");
  command.add_output_folder("--out DIR", options.out, "The folder to make; it must not exist yet").required();
  command.add_option("--format", all->format, "Format of the files").one_of({"text", "jsonl", "tsv"}).show_default();
  command.add_option("--document", all->document, "Where a document of plain text ends")
      .one_of({"line", "blank", "file"})
      .show_default();
  command.add_option("--field NAME", options.source.field, "JSONL: the field with the text").show_default();
  command.add_option("--source-field NAME", options.source.source_field, "JSONL pairs: the field with the source");
  command.add_option("--target-field NAME", options.source.target_field, "JSONL pairs: the field with the target");
  command.add_option("--split-validation", options.validation, "Share of the documents for validation").show_default();
  command.add_option("--seed", options.seed, "Seed: which documents these are").show_default();
  command.add_flag("--json", all->json, "Print the report as JSON, and nothing else");
  command.footer(kPackExamples);
  command.callback([all] { pack(*all); });
}

}  // namespace

void add_data(Command app) {
  const Command data = app.add_command("data", "Pack text for training, and look at it");
  data.needs_command();
  add_pack(data);
  add_data_stats(data);
  data.footer(
      "Examples:\n  qkv data pack --tokenizer gpt2/tokenizer.json --out books *.txt\n  qkv data stats books\n"
      "  qkv verify books                       every byte against its checksum");
}

}  // namespace qkv::app

#include "data/dataset_manifest.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"

namespace qkv {
namespace {

constexpr const char* kFormat = "qkv-data";
constexpr uint64_t kVersion = 1;
constexpr const char* kPackAgain = "the manifest is damaged or not one of ours; pack the data again";

using Ordered = nlohmann::ordered_json;

// Reads a manifest; `what` names it in errors.
struct Reading {
  const Json& json;
  std::string what;

  const Json& at(const char* key) const {
    QKV_CHECK(json.is_object() && json.contains(key), what, ": ", key, " is missing", Hint(kPackAgain));
    return json[key];
  }
  uint64_t number(const char* key) const {
    const Json& value = at(key);
    QKV_CHECK(value.is_number_unsigned(), what, ": ", key, " must be a number that is not negative", Hint(kPackAgain));
    return value.get<uint64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    QKV_CHECK(value.is_string(), what, ": ", key, " must be a text", Hint(kPackAgain));
    return value.get<std::string>();
  }
  std::optional<int32_t> token(const char* key, int64_t vocabulary) const {
    if (at(key).is_null()) return std::nullopt;
    const uint64_t id = number(key);
    QKV_CHECK(std::cmp_less(id, vocabulary), what, ": ", key, " is ", id, " but the vocabulary has ", vocabulary,
              Hint(kPackAgain));
    return static_cast<int32_t>(id);
  }
};

SplitInfo read_split(const Reading& reading, Split split) {
  SplitInfo info{.tokens = reading.number("tokens"),
                 .documents = reading.number("documents"),
                 .text_bytes = reading.number("text_bytes"),
                 .shards = {}};
  const Json& shards = reading.at("shards");
  QKV_CHECK(shards.is_array(), reading.what, ": shards must be a list", Hint(kPackAgain));
  CheckedU64 tokens(0, "tokens of all shards"), documents(0, "documents of all shards");
  for (const Json& shard : shards) {
    const Reading part{shard, fmt::format("{}, shard {}", reading.what, info.shards.size())};
    // Only this file name is accepted, so that a manifest cannot point outside its folder.
    const std::string file = part.text("file"), expected = shard_name(split, info.shards.size());
    QKV_CHECK(file == expected, part.what, ": file is ", printable(file), " but must be ", printable(expected),
              Hint(kPackAgain));
    info.shards.push_back({.file = file,
                           .tokens = part.number("tokens"),
                           .documents = part.number("documents"),
                           .tokens_sha256 = part.text("tokens_sha256"),
                           .index_sha256 = part.text("index_sha256")});
    tokens = tokens + info.shards.back().tokens;
    documents = documents + info.shards.back().documents;
  }
  QKV_CHECK(tokens.value() == info.tokens && documents.value() == info.documents, reading.what, ": its shards have ",
            tokens.value(), " tokens in ", documents.value(), " documents but the totals are ", info.tokens, " and ",
            info.documents, Hint(kPackAgain));
  return info;
}

Ordered split_json(const SplitInfo& info) {
  Ordered shards = Ordered::array();
  for (const ShardInfo& shard : info.shards) {
    shards.push_back({{"file", shard.file},
                      {"tokens", shard.tokens},
                      {"documents", shard.documents},
                      {"tokens_sha256", shard.tokens_sha256},
                      {"index_sha256", shard.index_sha256}});
  }
  return {{"tokens", info.tokens}, {"documents", info.documents}, {"text_bytes", info.text_bytes}, {"shards", shards}};
}

Ordered token_json(const std::optional<int32_t>& id) {
  return id ? Ordered(*id) : Ordered();
}

}  // namespace

const char* name_of(Split split) {
  return split == Split::train ? "train" : "validation";
}

const char* name_of_kind(const DatasetManifest& manifest) {
  return manifest.chats ? "chats" : manifest.pairs ? "pairs" : "text";
}
const char* name_of_documents(const DatasetManifest& manifest) {
  return manifest.chats ? "conversations" : manifest.pairs ? "pairs" : "documents";
}

std::string shard_name(Split split, size_t number) {
  return fmt::format("{}-{:05}", name_of(split), number);
}

int token_bytes_for(int64_t vocabulary) {
  return vocabulary <= 65'536 ? 2 : 4;
}

std::string to_json_text(const DatasetManifest& manifest) {
  const Ordered json{{"format", kFormat},
                     {"version", kVersion},
                     {"kind", name_of_kind(manifest)},
                     {"dtype", manifest.token_bytes == 2 ? "u16" : "u32"},
                     {"vocabulary", manifest.vocabulary},
                     {"tokenizer", manifest.tokenizer},
                     {"begin_token", token_json(manifest.begin_token)},
                     {"end_token", token_json(manifest.end_token)},
                     {"train", split_json(manifest.of(Split::train))},
                     {"validation", split_json(manifest.of(Split::validation))}};
  return json.dump(2) + '\n';
}

DatasetManifest parse_manifest(std::string_view text, const std::string& what) {
  const Json json = parse_json(text, what);
  const Reading reading{json, what};
  const std::string format = reading.text("format");
  QKV_CHECK(format == kFormat, what, ": format is ", printable(format), " but must be '", kFormat, "'",
            Hint("name a folder made by  qkv data pack"));
  const uint64_t version = reading.number("version");
  QKV_CHECK(version == kVersion, what, ": version is ", version, " but this program reads ", kVersion,
            Hint("use the program that wrote it, or pack the data again"));
  const std::string kind = reading.text("kind"), dtype = reading.text("dtype");
  QKV_CHECK(kind == "text" || kind == "pairs" || kind == "chats", what, ": kind is ", printable(kind),
            " but must be 'text', 'pairs' or 'chats'", Hint(kPackAgain));

  DatasetManifest manifest;
  manifest.pairs = kind == "pairs";
  manifest.chats = kind == "chats";
  const uint64_t vocabulary = reading.number("vocabulary");
  QKV_CHECK(vocabulary > 0 && std::cmp_less_equal(vocabulary, kLargestVocabulary), what, ": vocabulary is ", vocabulary,
            " but must lie in [1, ", kLargestVocabulary, "]", Hint(kPackAgain));
  manifest.vocabulary = static_cast<int64_t>(vocabulary);
  manifest.token_bytes = token_bytes_for(manifest.vocabulary);
  QKV_CHECK(dtype == (manifest.token_bytes == 2 ? "u16" : "u32"), what, ": dtype is ", printable(dtype),
            " but a vocabulary of ", manifest.vocabulary, " is stored in ", manifest.token_bytes, " bytes per token",
            Hint(kPackAgain));
  manifest.tokenizer = reading.text("tokenizer");
  manifest.begin_token = reading.token("begin_token", manifest.vocabulary);
  manifest.end_token = reading.token("end_token", manifest.vocabulary);
  for (const Split split : kSplits) {
    const char* name = name_of(split);
    manifest.of(split) = read_split({reading.at(name), what + ", " + name}, split);
  }
  return manifest;
}

}  // namespace qkv

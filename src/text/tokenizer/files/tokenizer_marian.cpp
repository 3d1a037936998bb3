// Marian's three files: SentencePiece splits the text, vocab.json has the ids, </s> ends every text.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "text/tokenizer/files/tokenizer_files.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/sentencepiece/sentencepiece.h"
#include "text/tokenizer/sentencepiece/sentencepiece_decoder.h"

namespace qkv {
namespace {

// Maps the ids of a model to other ids; tokens without one become unknown.
class Renumbered final : public TokenModel {
 public:
  Renumbered(TokenModelPtr model, Vocab vocab, int32_t unk_id)
      : model_(std::move(model)), vocab_(std::move(vocab)), unk_id_(unk_id) {
    for (int32_t id = 0; id < model_->vocab().size(); ++id) {
      const int32_t other = id == model_->id_shown_as_text() ? -1 : vocab_.find(model_->vocab().token(id));
      ids_.push_back(other >= 0 ? other : unk_id_);
    }
  }

  void encode(std::string_view piece, PieceTokens& out) const override {
    const size_t begin = out.ids.size();
    model_->encode(piece, out);
    for (size_t i = begin; i < out.ids.size(); ++i) out.ids[i] = ids_[static_cast<size_t>(out.ids[i])];
  }
  const Vocab& vocab() const override { return vocab_; }
  int32_t id_shown_as_text() const override { return unk_id_; }

 private:
  TokenModelPtr model_;
  Vocab vocab_;
  int32_t unk_id_;
  std::vector<int32_t> ids_;
};

Vocab read_marian_vocab(const std::filesystem::path& file) {
  const std::string text = read_file(file, kLargestTokenizerFile);
  JsonReader in(text, file.string(), {.bytes = kLargestTokenizerFile});
  const JsonText list = in.skip();
  in.end();
  return read_vocab(list, file.string());
}

bool is_language_code(std::string_view token) {
  return token.size() > 4 && token.starts_with(">>") && token.ends_with("<<");
}

}  // namespace

TokenizerParts parts_of_marian(const std::filesystem::path& spm) {
  const std::filesystem::path folder = spm.parent_path(), numbers = folder / "vocab.json";
  Vocab vocab = read_marian_vocab(numbers);
  const auto role = [&](std::string_view token) {
    const int32_t id = vocab.find(token);
    QKV_CHECK(id >= 0, numbers.string(), ": has no ", token, Hint("Marian's vocab.json has </s>, <unk> and <pad>"));
    return id;
  };
  TokenizerParts parts = parts_of_sentencepiece_file(spm);
  parts.added.clear();
  parts.named = {.eos = role("</s>"), .pad = role("<pad>"), .unk = role("<unk>")};
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string content(vocab.token(id));
    const bool special = id == parts.named.eos || id == parts.named.pad || id == parts.named.unk;
    if (special || is_language_code(content)) {
      parts.added.push_back({.id = id, .content = content, .normalized = false, .special = special});
    }
  }
  SentencePieceModel target = SentencePieceModel::parse(read_file(folder / "target.spm", kLargestTokenizerFile),
                                                        (folder / "target.spm").string());
  parts.decoder = sentencepiece_decoder(target);
  parts.model = std::make_unique<Renumbered>(std::move(parts.model), std::move(vocab), *parts.named.unk);
  const TemplatePiece end{.kind = TemplatePiece::Kind::special, .ids = {*parts.named.eos}, .tokens = {"</s>"}};
  const TemplatePiece end_of_second{.kind = end.kind, .type_id = 1, .ids = end.ids, .tokens = end.tokens};
  const TemplatePiece first{.kind = TemplatePiece::Kind::first_text};
  parts.post.single = {first, end};
  parts.post.pair = {first, end, {.kind = TemplatePiece::Kind::second_text, .type_id = 1}, end_of_second};
  return parts;
}

}  // namespace qkv

// One model as it is served: opened, with its caches and its queues. The engine's thread loads and steps it; everything
// else may be asked from any thread once it is loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "infer/grammar/token_trie.h"
#include "infer/scheduler.h"
#include "open/room.h"
#include "server/look/look_request.h"
#include "server/models/attribution_queue.h"
#include "server/models/embedding_queue.h"
#include "server/models/translate_queue.h"
#include "text/chat/chat_template.h"

namespace qkv::server {

struct ServeRoom {
  int64_t slots = 8;    // texts that are written at once
  int64_t queue = 64;   // that wait for a slot
  int64_t context = 0;  // most tokens of a text; 0: the usual
  std::optional<DType> cache = {};
  LookRules look = {};
};

class ServedModel {
 public:
  // Reads the files but no weights.
  ServedModel(std::string name, const std::string& path, const OpenOptions& options, const ServeRoom& room);

  // Bytes of weights, caches and passes, before any is taken.
  int64_t need() const;
  // Makes the caches and runs a token, so that the first request finds everything in memory.
  void load();

  const std::string& name() const { return name_; }
  const OpenModel& model() const { return model_; }
  int64_t created() const { return created_; }  // seconds since 1970
  int64_t context() const { return context_; }
  const ServeRoom& room() const { return room_; }
  const ChatTemplate* chat_template() const { return template_ ? &*template_ : nullptr; }
  BeamChoices beam_limits() const;           // of translations
  grammar::TokenTriePtr token_trie() const;  // for texts of a form; an Error where the tokenizer cannot spell them

  // An Error that says what this kind of model does instead.
  Scheduler& scheduler() const;
  TranslateQueue& translations() const;
  EmbeddingQueue& embeddings() { return embeddings_; }
  AttributionQueue& attributions() { return attributions_; }

  bool step();  // one pass of each queue; false if there was nothing to do
  Scheduler::Counts counts() const;
  bool full() const { return scheduler_ && scheduler_->full(); }  // no text more can wait

 private:
  RunOptions run_options() const;

  std::string name_;
  ServeRoom room_;
  OpenModel model_;
  int64_t context_;
  int64_t created_;
  std::optional<ChatTemplate> template_;
  std::variant<grammar::TokenTriePtr, Error> trie_;  // made by load()
  EmbeddingQueue embeddings_;
  AttributionQueue attributions_;
  std::optional<Runner> runner_;  // none of an encoder
  mutable std::optional<Scheduler> scheduler_;
  mutable std::optional<TranslateQueue> translations_;
};

}  // namespace qkv::server

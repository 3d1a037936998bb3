// The texts that commands look at: --data, --tokens, --window.
#pragma once

#include <string>
#include <vector>

#include "api/inside.h"
#include "api/texts.h"
#include "common/command.h"
#include "open/world_texts.h"

namespace qkv::app {

using api::kLargestTextFile;

struct TextOptions {
  std::string data;        // FILE, or world, world:zh, world:pairs; empty: see choose_data()
  int64_t tokens = 20000;  // most tokens in all
  int64_t length = 256;    // most tokens of one text; longer documents are cut
  bool ids = false;        // the file has token ids, a text a line
};
void add_text_options(Command command, TextOptions& options);
// --ids: the file has token ids. For commands that need no tokenizer.
Option add_ids_option(Command command, TextOptions& options);
// Names the data where none is named.
void choose_data(const ModelSpec& spec, TextOptions& options);

api::Data library_data(const TextOptions& options);
// Windows of a file, or stories of the built-in world; pairs for an encoder-decoder. An Error if there is no text of
// two tokens or more.
std::vector<TokenText> read_texts(const OpenModel& model, const TextOptions& options);

// The same, with targets for a model that is an encoder alone: some tokens are hidden.
std::vector<TokenText> read_scored_texts(const OpenModel& model, const TextOptions& options);

}  // namespace qkv::app

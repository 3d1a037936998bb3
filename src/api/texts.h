// Texts of the library as tokens of a model: one that was given, or many of a file or of the built-in world.
#pragma once

#include <qkv/text.h>

#include <vector>

#include "base/command_line.h"
#include "open/open_model.h"

namespace qkv::v1 {

inline constexpr size_t kLargestTextFile = size_t{1} << 30;

// An Error unless it is UTF-8, and has a target only where the model has one.
void check_text(const OpenModel& model, const Text& given);
// Texts get the special tokens the model expects; ids are taken as they are, after the token a target starts with, and
// must be in the vocabulary.
TokenText tokens_of(const OpenModel& model, const Text& given);

// What is measured on where nothing is said: stories of the built-in world, or its pairs for a model that translates.
const char* usual_data(const ModelSpec& spec);

// Windows of a file, or stories of the built-in world; pairs for an encoder-decoder. An Error if there is no text of two
// tokens or more.
std::vector<TokenText> texts_of(const OpenModel& model, const Data& data);
// Texts that a model is scored on: of one that is an encoder alone, some tokens are hidden.
std::vector<TokenText> scored_texts(const OpenModel& model, std::vector<TokenText> texts);

// A file of token ids, a text a line; source<TAB>target for a model that translates.
std::vector<TokenText> texts_of_ids(const OpenModel& model, const Data& data);

// What a text is called in a report: itself, or its ids.
std::string title_of(const Text& given);
std::string target_title_of(const Text& given);
// Adds the source or text as an argument, the target as an option, or --ids: as commands take them.
void add_text(CommandLine& line, const Text& given);

// "1 403,407": whole numbers with spaces or commas between them.
std::vector<int32_t> parse_ids(std::string_view text);

}  // namespace qkv::v1

// Story labels in file formats: CoNLL-U, and JSON with one object per line.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "world/story.h"

namespace qkv {

// Ten columns, preceded by # newdoc, # sent_id and # text; SpaceAfter=No and Entity=eN in MISC.
std::string to_conllu(const AnnotatedText& annotated, std::string_view document);

// One line per sentence: English, a tab, Chinese.
std::string to_pairs(const Story& story);

// Offsets are given both in UTF-8 bytes and in characters.
nlohmann::ordered_json mentions_json(const AnnotatedText& annotated);
nlohmann::ordered_json answers_json(const AnnotatedText& annotated);
// One JSON object a line and sentence: the text of both sides, their words as byte ranges, and the pairs of source and
// target words (word_links.h). `source`: the language that is read.
std::string to_alignments(const Story& story, Language source);

nlohmann::ordered_json brackets_json(const AnnotatedText& annotated);

}  // namespace qkv

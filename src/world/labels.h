// A story's labels as files carry them: CoNLL-U, and one JSON object a line.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "world/story.h"

namespace qkv {

// Ten columns; # newdoc, # sent_id and # text before them; SpaceAfter=No and Entity=eN in the last.
std::string to_conllu(const Telling& telling, std::string_view document);

// One line a sentence: English, a tab, Chinese.
std::string to_pairs(const Story& story);

// Offsets are given twice: in bytes of UTF-8 and in characters.
nlohmann::ordered_json mentions_json(const Telling& telling);
nlohmann::ordered_json answers_json(const Telling& telling);
nlohmann::ordered_json partners_json(const Telling& telling);

}  // namespace qkv

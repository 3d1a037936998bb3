// What the labs measured when they were last run for the record: src/labs/recorded/NAME.json is what
// qkv lab NAME --out wrote, recorded/again/NAME.json what the same wrote with other seeds. A lab may have none yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "labs/lab.h"
#include "text/chat/ordered_json.h"

namespace qkv {

// Name and report of each; made by CMake.
const std::vector<std::pair<std::string_view, std::string_view>>& recorded_labs();
const std::vector<std::pair<std::string_view, std::string_view>>& recorded_again();

// Null if there is none.
OrderedJson recorded_report(const Lab& lab);
OrderedJson recorded_again(const Lab& lab);
// On two cores: half of the CPU seconds of the record.
std::optional<double> recorded_seconds(const Lab& lab);

// The table of docs/labs.md, from the records; it stands between these two lines.
constexpr const char* kLabsTableBegin = "<!-- written by: qkv lab --docs docs/labs.md -->";
constexpr const char* kLabsTableEnd = "<!-- end of what qkv lab --docs writes -->";
std::string labs_table();
std::string with_labs_table(const std::string& document);  // the document with the table as it is now

}  // namespace qkv

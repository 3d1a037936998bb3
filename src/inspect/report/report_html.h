// The page of a report: one file that shows it offline in any browser, with nothing to fetch (web/report/).
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

// Bytes that are no UTF-8 are shown as U+FFFD: a report is made of texts for people (text/tokenizer/display_spans.h).
std::string report_html(const Json& report);

}  // namespace qkv

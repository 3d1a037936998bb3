// A report as one self-contained HTML file that works offline (web/report/).
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

// Invalid UTF-8 becomes U+FFFD; token texts are made printable before (text/tokenizer/display_spans.h).
std::string report_html(const Json& report);

}  // namespace qkv

// A report as one self-contained HTML file (docs/page.md): it works offline, or is the page of qkv serve.
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

// Only a report of kind "live" may talk to its server; any other page asks for nothing.
// Invalid UTF-8 becomes U+FFFD; token texts are made printable before (text/tokenizer/display_spans.h).
std::string report_html(const Json& report);

}  // namespace qkv

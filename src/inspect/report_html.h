// A report as one page that opens offline.
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

std::string report_html(const Json& report);

}  // namespace qkv

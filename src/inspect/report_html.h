// The page of a report: one file that shows it offline in any browser.
#pragma once

#include <string>

#include "base/json.h"

namespace qkv {

std::string report_html(const Json& report);

}  // namespace qkv

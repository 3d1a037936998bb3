// The report of qkv info, as text and JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "model/describe/summary.h"

namespace qkv {

std::string report_text(const ModelSpec& spec, const ModelSummary& summary);
nlohmann::ordered_json report_json(const ModelSpec& spec, const ModelSummary& summary);

}  // namespace qkv

// What a lab found, as JSON and as a page.
#pragma once

#include <span>
#include <string>

#include "labs/lab.h"
#include "text/chat/ordered_json.h"

namespace qkv::app {

OrderedJson lab_report(const Lab& lab, const LabResult& result, const Engine& engine, double size);

// One page of the reports, which opens offline: claim, rules, numbers with intervals, curves, conclusion.
std::string labs_html(std::span<const OrderedJson> reports, const std::string& made_with);

}  // namespace qkv::app

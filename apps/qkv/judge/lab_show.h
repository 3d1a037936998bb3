// What qkv lab prints.
#pragma once

#include <string>

#include "labs/lab.h"

namespace qkv::app {

std::string indented(std::string text);  // wrapped at the terminal's width

// Numbers, curves, rules, the sentence and the verdict.
void show_result(const Lab& lab, const LabResult& result);

}  // namespace qkv::app

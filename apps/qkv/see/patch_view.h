// What qkv patch prints.
#pragma once

#include <string>

#include "inspect/report/patch_report.h"

namespace qkv::app {

// "residual stream", "attention's output", ...; with the stack where there are several.
std::string title_of(const PatchMap& map, bool several_stacks);

std::string draw_patches(const PatchFindings& found, int columns);

}  // namespace qkv::app

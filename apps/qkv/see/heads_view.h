// What qkv heads shows: a table of roles, a wall of all heads, and gold labels.
#pragma once

#include "inspect/report/heads_report.h"

namespace qkv::app {

void show(const HeadsReport& report);

}  // namespace qkv::app

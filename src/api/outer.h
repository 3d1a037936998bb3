// Types of the library made of those inside.
#pragma once

#include <qkv/look.h>

#include "inspect/report/estimate.h"

namespace qkv::v1 {

Estimate outer(const qkv::Estimate& e);

}  // namespace qkv::v1

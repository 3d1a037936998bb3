// What this program was built from.
#pragma once

namespace qkv::app {

const char* built_from();  // the commit, 12 digits; "unknown" outside of a git checkout

}  // namespace qkv::app

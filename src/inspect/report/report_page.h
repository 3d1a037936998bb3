// The page (web/dist/page.html), a part of the program (cmake/rooms.cmake).
#pragma once

#include <string_view>

namespace qkv {

// With the places {{connect}} (what the page may talk to) and {{report}}, in this order, each once.
std::string_view report_page();

}  // namespace qkv

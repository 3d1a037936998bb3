// The files of web/report, embedded into the program at configure time (cmake/rooms.cmake).
#pragma once

#include <span>
#include <string_view>

namespace qkv {

struct ReportPage {
  std::string_view page;  // with the placeholders {{style}}, {{report}} and {{script}}, each once
  std::string_view style;
  std::span<const std::string_view> scripts;  // in the order they run
};
const ReportPage& report_page();

}  // namespace qkv

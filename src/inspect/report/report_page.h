// The files of web/report, made a part of the program when it is configured (cmake/rooms.cmake).
#pragma once

#include <span>
#include <string_view>

namespace qkv {

struct ReportPage {
  std::string_view page;  // holds the marks {{style}}, {{report}} and {{script}}, each once
  std::string_view style;
  std::span<const std::string_view> scripts;  // in the order they run
};
const ReportPage& report_page();

}  // namespace qkv

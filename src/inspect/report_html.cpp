#include "inspect/report_html.h"

namespace qkv {

std::string report_html(const Json& report) {
  std::string data = report.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (size_t at = data.find('<'); at != std::string::npos; at = data.find('<', at)) data.replace(at, 1, "\\u003c");
  return "<!doctype html>\n<meta charset=\"utf-8\">\n<title>qkv</title>\n<script type=\"application/json\" "
         "id=\"report\">" +
         data + "</script>\n";
}

}  // namespace qkv

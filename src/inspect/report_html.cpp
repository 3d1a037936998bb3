#include "inspect/report_html.h"

namespace qkv {

std::string report_html(const Json& report) {
  std::string text;
  for (const char c : report.dump(1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "&lt;";
    } else if (c == '&') {
      text += "&amp;";
    } else {
      text += c;
    }
  }
  return "<!doctype html><html><meta charset=\"utf-8\"><title>qkv</title><pre>" + text + "</pre></html>\n";
}

}  // namespace qkv

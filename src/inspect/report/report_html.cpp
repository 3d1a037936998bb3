#include "inspect/report/report_html.h"

#include <string_view>

#include "base/error.h"
#include "inspect/report/report_page.h"

namespace qkv {
namespace {

// Escapes JSON for a <script> element: "</script" and "<!--" would end or change the element, and U+2028 and U+2029 are
// line ends in old JavaScript. All of them can occur only inside strings.
std::string safe_in_script(const std::string& json) {
  constexpr std::string_view kLineSeparators = "\xE2\x80";  // then A8 or A9
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      safe += "\\u003c";
    } else if (json.compare(i, 2, kLineSeparators) == 0 && (json[i + 2] == '\xA8' || json[i + 2] == '\xA9')) {
      safe += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

// Moves the text before the mark from rest to html, and drops the mark.
void copy_until(std::string_view mark, std::string_view& rest, std::string& html) {
  const size_t at = rest.find(mark);
  QKV_ASSERT(at != rest.npos, "the page has no ", mark);
  html += rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
}

}  // namespace

std::string report_html(const Json& report) {
  const bool live = report.is_object() && report.value("report", "") == "live";
  std::string_view rest = report_page();
  std::string html;
  copy_until("{{connect}}", rest, html);
  html += live ? "'self'" : "'none'";
  copy_until("{{report}}", rest, html);
  html += safe_in_script(report.dump(-1, ' ', false, Json::error_handler_t::replace));
  html += rest;
  return html;
}

}  // namespace qkv

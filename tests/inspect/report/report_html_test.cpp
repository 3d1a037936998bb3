#include "inspect/report/report_html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "text/tokenizer/files/base64.h"

namespace qkv {
namespace {

constexpr std::string_view kOpen = R"(<script type="application/json" id="report">)";

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// The element's text as a browser reads it: everything up to the first "</script".
std::string embedded(const std::string& html) {
  const size_t begin = html.find(kOpen) + kOpen.size();
  return html.substr(begin, html.find("</script", begin) - begin);
}

std::string base64_sha256(const std::string& text) {
  const std::string hex = sha256_hex(std::as_bytes(std::span(text)));
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return encode_base64(bytes);
}

TEST(ReportHtml, whatever_text_a_report_has_it_comes_out_of_the_page_as_it_went_in) {
  const char* const texts[] = {"</script><script>alert(1)</script>",
                               "<!-- <script> ]]>",
                               "\u2028 and \u2029",
                               "\"quotes\" 'and' \\back\\slashes\\",
                               "{{style}} {{script}} {{report}}",
                               "小猫坐在垫子上。🦊 👩‍👩‍👧",
                               "\xE2\x80\xA6 \xE2\x80\x94 \xE2",  // the ellipsis shares its first bytes with U+2028
                               "line\nend\ttab\u0001"};
  Json report;
  for (const char* text : texts) report["written"].push_back({{"text", text}});
  const std::string inside = embedded(report_html(report));

  for (const char* bad : {"<", "\u2028", "\u2029"}) EXPECT_EQ(count(inside, bad), 0u) << bad;
  Json expected = report;
  expected["written"][6]["text"] = "… — \uFFFD";  // only invalid UTF-8 is changed
  EXPECT_EQ(parse_json(inside, "the page's report"), expected);
}

TEST(ReportHtml, the_page_is_whole_and_fetches_nothing) {
  const std::string html = report_html(Json::object());
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  EXPECT_EQ(embedded(html), "{}");
  EXPECT_EQ(count(html, "</script>"), 2u);  // the report's and the program's
  EXPECT_EQ(count(html, "</style>"), 1u);
  for (const char* bad : {"@import", "XMLHttpRequest", "{{"}) EXPECT_EQ(count(html, bad), 0u) << bad;
  EXPECT_EQ(count(html, "src="), count(html, "src=`data:"));  // a picture that is saved
  EXPECT_EQ(count(html, "url("), count(html, "url(#"));       // parts of the same picture
  EXPECT_EQ(count(html, "http"),
            count(html, "http-equiv") + count(html, "http://www.w3.org/"));  // names of SVG and MathML
}

TEST(ReportHtml, the_policy_names_the_two_texts_that_may_run_and_only_a_live_page_may_ask_its_server) {
  const std::string file = report_html(Json::object()), live = report_html({{"report", "live"}});
  EXPECT_EQ(count(file, "connect-src 'none'"), 1u);
  EXPECT_EQ(count(live, "connect-src 'self'"), 1u);
  for (const std::string& html : {file, live}) {
    EXPECT_EQ(count(html, "default-src 'none'"), 1u);
    EXPECT_EQ(count(html, "'unsafe-"), 0u);
    for (const char* tag : {"script", "style"}) {
      const std::string open = fmt::format("<{}>", tag), close = fmt::format("</{}>", tag);
      const size_t begin = html.find(open) + open.size();
      const std::string text = html.substr(begin, html.find(close, begin) - begin);
      EXPECT_EQ(count(html, fmt::format("{}-src 'sha256-{}'", tag, base64_sha256(text))), 1u) << tag;
    }
  }
}

}  // namespace
}  // namespace qkv

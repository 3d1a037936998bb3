#include "inspect/report/report_html.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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
  EXPECT_EQ(count(html, "default-src 'none'"), 1u);
  size_t at = html.find(kOpen);  // every script is there, in the order they run
  for (const char* part : {"const words", "const report =", "function tokensPart", "function wallPart",
                           "function storyPart", "function moviePart", "function render("}) {
    const size_t next = html.find(part, at);
    ASSERT_NE(next, html.npos) << part;
    at = next;
  }
  for (const char* bad : {"http://", "https://", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "{{"}) {
    EXPECT_EQ(count(html, bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace qkv

// Every number that a route of the page reads, at its bounds and beyond.
#include <set>

#include "base/file.h"
#include "server/test_server.h"

namespace qkv {
namespace {

struct PageNumber {
  const char* path;
  Json body;  // everything else
  const char* field;
  Json low, high, below, above;
  bool whole = true;
};

std::vector<PageNumber> page_numbers() {
  const Json text{{"text", "one two three"}};
  Json cut = text, sum{{"q", 3}}, other{{"p", 3}};
  cut["cut"] = {"L0H0"};
  cut["loss"] = false;
  const Json drawn{{"digits", 1}, {"count", 1}}, weight{{"matrix", "q"}, {"rows", {0, 1}}};
  return {
      {"look", text, "token", 0, 2, -1, 511},
      {"story", text, "token", 0, 2, -1, 511},
      {"story", text, "layer", 0, 1, -1, 2},
      {"story", text, "head", 0, 3, -1, 4},
      {"weight", weight, "layer", 0, 1, -1, 2},
      {"weight", weight, "head", 0, 3, -1, 32768},
      {"weight", weight, "expert", nullptr, nullptr, -1, 32768},
      {"write", text, "max_tokens", 1, 256, 0, 257},
      {"write", text, "temperature", 0, 10, -0.001, 10.001, false},
      {"write", text, "top_k", 0, 608, -1, 609},
      {"write", text, "top_p", 0, 1, -0.001, 1.001, false},
      {"write", text, "seed", 0, INT64_MAX, -1, 1e19},
      {"cut", cut, "max_tokens", 1, 256, 0, 257},
      {"decode", text, "steps", 1, 8, 0, 1 << 20},
      {"sums", drawn, "digits", 1, 4, 0, 5},
      {"sums", drawn, "count", 1, 2, 0, 1 << 20},
      {"sums", drawn, "seed", 0, 1 << 30, -1, (1 << 30) + 1},
      {"sums", sum, "p", 0, 99, -1, 1e12},
      {"sums", other, "q", 0, 99, -1, 1e12},
  };
}

TEST(PageNumbers, AtTheirBoundsAndBeyond) {
  const test::RunningServer server(test::RunningServer::usual({"plain"}));
  for (const PageNumber& number : page_numbers()) {
    const auto ask = [&](const Json& value) {
      Json body = number.body;
      body[number.field] = value;
      return server.post(std::string("/page/") + number.path, body);
    };
    for (const Json& good : {number.low, number.high}) {
      if (good.is_null()) continue;
      const test::HttpAnswer answer = ask(good);
      EXPECT_EQ(answer.status, 200) << number.path << " " << number.field << " " << good << ": " << answer.body;
    }
    std::vector<Json> wrong{number.below, number.above, 1e308, -1e308, "1", "", true, Json::array(), Json::object()};
    if (number.whole) wrong.push_back(1.5);
    for (const Json& bad : wrong) {
      const test::HttpAnswer answer = ask(bad);
      ASSERT_EQ(answer.status, 400) << number.path << " " << number.field << " " << bad << ": " << answer.body;
      EXPECT_EQ(answer.error("param"), number.field) << number.path << " " << bad;
    }
  }
}

// A route that reads a number under a new name has to be added above; work from the page is tested in jobs_test.cpp.
TEST(PageNumbers, AllOfThemAreTested) {
  std::set<std::string> tested{"seeds"};
  for (const PageNumber& number : page_numbers()) tested.insert(number.field);
  size_t found = 0;
  for (const auto& file : std::filesystem::directory_iterator(test::golden("..") / ".." / "src" / "server" / "page")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = read_file(file.path(), 1 << 20);
    for (const char* call : {"number(\"", "whole(\""}) {
      for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
        const std::string name = test::quoted_names(text.substr(at, 80)).front();
        ++found;
        EXPECT_TRUE(tested.contains(name)) << name << " of " << file.path().filename();
      }
    }
  }
  EXPECT_GE(found, 18U);
}

}  // namespace
}  // namespace qkv

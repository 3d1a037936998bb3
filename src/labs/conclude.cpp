// What a lab's result says, in a sentence.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "labs/lab.h"

namespace qkv {

std::string short_number(double x) {
  return std::abs(x) >= 1000 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
}

namespace {

// {name} and {name%} in a sentence become numbers.
std::string filled(const std::string& sentence, const std::vector<LabRow>& rows, const char* percent) {
  std::string out;
  size_t at = 0;
  for (size_t open = 0; (open = sentence.find('{', at)) != std::string::npos;) {
    const size_t close = sentence.find('}', open);
    QKV_ASSERT(close != std::string::npos, "a { without its } in '", sentence, "'");
    std::string name = sentence.substr(open + 1, close - open - 1);
    const bool as_percent = name.ends_with('%');
    if (as_percent) name.pop_back();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const LabRow& r) { return r.name == name; });
    QKV_ASSERT(row != rows.end(), "a sentence names '", name, "', which was not measured");
    out += sentence.substr(at, open - at);
    out += as_percent ? short_number(100 * row->mean) + percent : short_number(row->mean);
    at = close + 1;
  }
  return out + sentence.substr(at);
}

}  // namespace

LabSentence conclusion(const Lab& lab, const LabResult& result) {
  if (result.verdict == Verdict::none) {
    return {"Not all seeds were finished, so there is no conclusion.", "种子没有全部跑完，所以没有结论。"};
  }
  const LabSentence& says = result.verdict == Verdict::seen    ? lab.found.seen
                            : result.verdict == Verdict::mixed ? lab.found.mixed
                                                               : lab.found.not_seen;
  return {filled(says.english, result.rows, " %"), filled(says.chinese, result.rows, "%")};
}

LabSentence part_conclusion(const Lab& lab, const LabResult& result, size_t part) {
  const LabPart& of = lab.parts[part];
  if (const LabSkipped* skipped = skipped_part(lab, result, part)) {
    return {"Skipped: " + skipped->why.english, "跳过：" + skipped->why.chinese};
  }
  if (result.parts[part] == Verdict::none) return conclusion(lab, result);
  return {filled(of.found.english, result.rows, " %"), filled(of.found.chinese, result.rows, "%")};
}

}  // namespace qkv

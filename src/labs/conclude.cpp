// What a lab's result says, in a sentence, and the table of docs/labs.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "labs/lab.h"
#include "labs/recorded.h"

namespace qkv {
namespace {

std::string short_number(double x) {
  return std::abs(x) >= 1000 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
}

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

std::string cell_of_rules(const OrderedJson& report) {
  std::string cell;
  for (const OrderedJson& rule : report.at("rules")) {
    if (rule.at("held").is_null()) {
      cell += fmt::format("{}– {}: skipped", cell.empty() ? "" : "<br>", rule.at("number").get<std::string>());
      continue;
    }
    const auto& rows = report.at("rows");
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const OrderedJson& r) { return r.at("name") == rule.at("number"); });
    QKV_CHECK(row != rows.end(), "the record of ", report.at("lab").get<std::string>(), " has a rule about '",
              rule.at("number").get<std::string>(), "' and no such number", Hint("run the lab for the record again"));
    const auto number = [&](const char* key) { return short_number(row->at(key).get<double>()); };
    cell +=
        fmt::format("{}{} {}: {} [{}, {}], {} {}", cell.empty() ? "" : "<br>", rule.at("held").get<bool>() ? "✓" : "✗",
                    rule.at("number").get<std::string>(), number("mean"), number("low"), number("high"),
                    rule.at("side") == "above" ? ">" : "<", short_number(rule.at("bound").get<double>()));
  }
  return cell;
}

// "**mixed**, 3 seeds", then the verdict of each part.
std::string cell_of_verdicts(const OrderedJson& report) {
  std::string cell =
      fmt::format("**{}**, {} seeds", report.at("verdict").get<std::string>(), report.at("seeds").size());
  for (const OrderedJson& part : report.value("parts", OrderedJson::array())) {
    cell += fmt::format("<br>{}: **{}**", part.at("name").get<std::string>(), part.at("verdict").get<std::string>());
  }
  return cell;
}

// What was found, then of each part.
std::string cell_of_sentences(const OrderedJson& report) {
  std::string cell = report.at("found").get<std::string>() + "<br>" + report.at("found_zh").get<std::string>();
  for (const OrderedJson& part : report.value("parts", OrderedJson::array())) {
    cell += fmt::format("<br>*{}*: {}<br>{}", part.at("name").get<std::string>(), part.at("found").get<std::string>(),
                        part.at("found_zh").get<std::string>());
  }
  return cell;
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

OrderedJson recorded_report(const Lab& lab) {
  for (const auto& [name, text] : recorded_labs()) {
    if (name == lab.name) return OrderedJson::parse(text);
  }
  return nullptr;
}

std::optional<double> recorded_seconds(const Lab& lab) {
  const OrderedJson report = recorded_report(lab);
  if (!report.is_object() || !report.contains("cpu_seconds")) return std::nullopt;
  return report.at("cpu_seconds").get<double>() / 2;
}

std::string labs_table() {
  std::string table = "| lab | verdict | what was found | rules: mean [95 %], bound | two cores |\n|--|--|--|--|--|\n";
  for (const Lab* lab : all_labs()) {
    const OrderedJson report = recorded_report(*lab);
    if (!report.is_object()) {
      table += fmt::format("| {} | not recorded yet | | | |\n", lab->name);
      continue;
    }
    table +=
        fmt::format("| {} | {} | {} | {} | {:.0f} s |\n", lab->name, cell_of_verdicts(report),
                    cell_of_sentences(report), cell_of_rules(report), std::ceil(recorded_seconds(*lab).value_or(0)));
  }
  return table;
}

std::string with_labs_table(const std::string& document) {
  const size_t begin = document.find(kLabsTableBegin), end = document.find(kLabsTableEnd);
  QKV_CHECK(begin != std::string::npos && end != std::string::npos && begin < end,
            "the document has no place for the table",
            Hint("put the lines ", kLabsTableBegin, " and ", kLabsTableEnd, " where it belongs"));
  const size_t after = begin + std::string_view(kLabsTableBegin).size();
  return document.substr(0, after) + "\n" + labs_table() + document.substr(end);
}

}  // namespace qkv

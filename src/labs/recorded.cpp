// The records of the labs, and the table of docs/labs.md that is made of them.
#include "labs/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace qkv {
namespace {

// "0.98 [0.97, 1]": the number of a rule, as a report has it.
std::string measured(const OrderedJson& report, const OrderedJson& rule) {
  const auto& rows = report.at("rows");
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const OrderedJson& r) { return r.at("name") == rule.at("number"); });
  QKV_CHECK(row != rows.end(), "the record of ", report.at("lab").get<std::string>(), " has a rule about '",
            rule.at("number").get<std::string>(), "' and no such number", Hint("run the lab for the record again"));
  const auto number = [&](const char* key) { return short_number(row->at(key).get<double>()); };
  return fmt::format("{} [{}, {}]", number("mean"), number("low"), number("high"));
}

std::string held_or_not(const OrderedJson& rule) {
  return rule.at("held").is_null() ? "–" : rule.at("held").get<bool>() ? "✓" : "✗";
}

// One rule in a line: its number, its bound, and what the second run says of it.
std::string cell_of_rules(const OrderedJson& report, const OrderedJson& again) {
  std::string cell;
  for (size_t i = 0; i < report.at("rules").size(); ++i) {
    const OrderedJson& rule = report.at("rules")[i];
    const bool skipped = rule.at("held").is_null();
    cell += fmt::format("{}{} {}: {}", cell.empty() ? "" : "<br>", held_or_not(rule),
                        rule.at("number").get<std::string>(), skipped ? "skipped" : measured(report, rule));
    if (skipped) continue;
    cell +=
        fmt::format(", {} {}", rule.at("side") == "above" ? ">" : "<", short_number(rule.at("bound").get<double>()));
    if (!again.is_object() || again.at("rules")[i].at("held").is_null()) continue;
    cell += fmt::format("; again {} {}", held_or_not(again.at("rules")[i]), measured(again, rule));
  }
  return cell;
}

// "**mixed**, seeds 1 to 3", then the verdict of each part.
std::string cell_of_verdicts(const OrderedJson& report) {
  const auto& seeds = report.at("seeds");
  std::string cell = fmt::format("**{}**, seeds {} to {}", report.at("verdict").get<std::string>(),
                                 seeds.front().get<int64_t>(), seeds.back().get<int64_t>());
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

OrderedJson report_of(const Lab& lab, const std::vector<std::pair<std::string_view, std::string_view>>& records) {
  for (const auto& [name, text] : records) {
    if (name == lab.name) return OrderedJson::parse(text);
  }
  return nullptr;
}

}  // namespace

OrderedJson recorded_report(const Lab& lab) {
  return report_of(lab, recorded_labs());
}

OrderedJson recorded_again(const Lab& lab) {
  return report_of(lab, recorded_again());
}

std::optional<double> recorded_seconds(const Lab& lab) {
  const OrderedJson report = recorded_report(lab);
  if (!report.is_object() || !report.contains("cpu_seconds")) return std::nullopt;
  return report.at("cpu_seconds").get<double>() / 2;
}

std::string labs_table() {
  std::string table =
      "| lab | verdict | the same with other seeds | what was found | rules: mean [95 %], bound; again: with the other "
      "seeds | two cores |\n|--|--|--|--|--|--|\n";
  for (const Lab* lab : all_labs()) {
    const OrderedJson report = recorded_report(*lab), again = recorded_again(*lab);
    if (!report.is_object()) {
      table += fmt::format("| {} | not recorded yet | | | | |\n", lab->name);
      continue;
    }
    table += fmt::format("| {} | {} | {} | {} | {} | {:.0f} s |\n", lab->name, cell_of_verdicts(report),
                         again.is_object() ? cell_of_verdicts(again) : "not run yet", cell_of_sentences(report),
                         cell_of_rules(report, again), std::ceil(recorded_seconds(*lab).value_or(0)));
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

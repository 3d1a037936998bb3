#include "report.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>

#include "base/json.h"
#include "peer.h"

namespace qkv::bench {
namespace {

using On = Limits::On;
using OrderedJson = nlohmann::ordered_json;

// Three significant digits: 0.0123, 1.23, 31.4, 4096.
std::string digits(double value) {
  if (value < 0.1) return fmt::format("{:.4f}", value);
  if (value < 1) return fmt::format("{:.3f}", value);
  if (value < 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.{}f}", value, value < 100 ? 1 : 0);
}

std::string scaled(double rate, Limit limit) {
  return digits(rate / text_of(limit).scale);
}

class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  std::string title(const std::string& text) const { return on_ ? "\033[1m" + text + "\033[0m" : text; }
  std::string share(const std::string& text, double share) const {
    if (!on_) return text;
    const char* colour = share >= 0.6 ? "\033[32m" : share >= 0.3 ? "\033[33m" : "\033[31m";
    return colour + text + "\033[0m";
  }

 private:
  bool on_;
};

void print_limits(std::ostream& out, const Report& report, const Paint& paint) {
  const Limits& limits = report.limits;
  std::string title = fmt::format("{:<26}{:<9}{:>18}", "Limits (best, median)", "", "1 thread");
  if (limits.threads() > 1) title += fmt::format("{:>20}", fmt::format("{} threads", limits.threads()));
  out << paint.title(title) << '\n';
  for (int l = 0; l < kLimits; ++l) {
    const auto limit = static_cast<Limit>(l);
    if (limits.of() != of(limit)) continue;
    fmt::print(out, "  {:<24}{:<9}", text_of(limit).name, text_of(limit).unit);
    if (!limits.usable(limit)) {
      out << "  not on this CPU\n";
      continue;
    }
    for (const On on : {On::one, On::all}) {
      if (on == On::one && limits.of() == Limits::Of::gpu) continue;
      if (on == On::all && limits.threads() == 1 && limits.of() == Limits::Of::cpu) break;
      const std::vector<double>& readings = limits.readings(limit, on);
      fmt::print(out, "{}{:>9}{:>9}", on == On::all ? "  " : "", scaled(best_of(readings), limit),
                 scaled(median_of(readings), limit));
    }
    out << '\n';
  }
}

// Other processes, or AMX in its slow mode, may have slowed ours and its limit unequally.
bool disturbed(const Report& report, const Row& row) {
  constexpr double kUsual = 0.85;
  return row.switches > kCalmPreemptions ||
         best_of(row.limit) < kUsual * best_of(report.limits.readings(row.limit_kind, On::all));
}

void print_rows(std::ostream& out, const Report& report, const Paint& paint) {
  out << paint.title(fmt::format(
             "{:<23} {:<7}{:<27}{:>8}{:>8} {:<8}{:>7}  {:<22}{:<9}{:>7}{:>8}{:>7}",
             fmt::format("Ops on {} thread{}", report.limits.threads(), report.limits.threads() == 1 ? "" : "s"), "",
             "size", "best", "median", "", "share", "of", "peer", "best", "median", "ratio"))
      << '\n';
  for (const Row& row : report.rows) {
    const auto text = [&](double rate) { return scaled(rate, row.limit_kind); };
    fmt::print(
        out, "{:<23} {:<7}{:<27}{:>8}{:>8} {:<8}{}  {:<{}}", row.name, row.dtype, row.size + (row.full ? "" : " *"),
        text(best_of(row.ours)), text(median_of(row.ours)), text_of(row.limit_kind).unit,
        paint.share(
            fmt::format("{:>7}", fmt::format("{}{:.0f} %", disturbed(report, row) ? "~" : "", 100 * row.share())),
            row.share()),
        fmt::format("{} {}", text(best_of(row.limit)), text_of(row.limit_kind).label), row.beside.empty() ? 0 : 22);
    for (const BesideRates& other : row.beside) {
      fmt::print(out, "{:<9}{:>7}{:>8}{:>6.2f}x  ", other.name, text(best_of(other.rates)),
                 text(median_of(other.rates)), row.ratio(other));
    }
    out << (row.note.empty() ? "" : "  " + row.note) << '\n';
  }
}

std::vector<std::string> notes_of(const Report& report) {
  std::vector<std::string> notes = report.limits.notes(report.busy());
  const auto some = [&](const auto& has) { return std::any_of(report.rows.begin(), report.rows.end(), has); };
  if (some([](const Row& row) { return !row.full; })) {
    notes.emplace_back("* smaller than the real size: the op is too slow here for the full one");
  }
  if (some([&](const Row& row) { return disturbed(report, row); })) {
    notes.push_back("~ other processes used the CPUs, or the limit was well below its best: measure again with --only");
  }
  if (report.busy()) {
    notes.push_back(fmt::format("this machine was busy: other processes preempted this run {:.0f} times per second",
                                report.preempted / report.seconds));
  }
  return notes;
}

OrderedJson limit_json(const Limits& limits, Limit limit, On on) {
  const std::vector<double>& readings = limits.readings(limit, on);
  return {{"name", text_of(limit).name},
          {"threads", on == On::all ? limits.threads() : 1},
          {"unit", text_of(limit).unit},
          {"usable", limits.usable(limit)},
          {"readings", readings.size()},
          {"best", best_of(readings) / text_of(limit).scale},
          {"median", median_of(readings) / text_of(limit).scale},
          {"lowest", lowest_of(readings) / text_of(limit).scale}};
}

OrderedJson row_json(const Report& report, const Row& row) {
  const LimitText& limit = text_of(row.limit_kind);
  OrderedJson out{{"op", row.name},
                  {"dtype", row.dtype},
                  {"size", row.size},
                  {"real_size", row.full},
                  {"amount", row.amount},
                  {"rounds", row.ours.size()},
                  {"unit", limit.unit},
                  {"best", best_of(row.ours) / limit.scale},
                  {"median", median_of(row.ours) / limit.scale},
                  {"limit", {{"name", limit.name}, {"best", best_of(row.limit) / limit.scale}}},
                  {"share", row.share()},
                  {"put_off_per_second", row.switches},
                  {"disturbed", disturbed(report, row)}};
  for (const BesideRates& other : row.beside) {
    out["beside"].push_back({{"name", other.name},
                             {"best", best_of(other.rates) / limit.scale},
                             {"median", median_of(other.rates) / limit.scale},
                             {"ratio", row.ratio(other)}});
  }
  if (!row.note.empty()) out["note"] = row.note;
  return out;
}

}  // namespace

Machine this_machine(const Engine& engine) {
  Machine machine{.cpu = device_name(engine.device()), .table = engine.kernels().name, .threads = engine.threads()};
  for (const Peer* peer : peers()) machine.peers += (machine.peers.empty() ? "" : ", ") + peer->about();
  return machine;
}

void print_table(std::ostream& out, const Report& report, bool colour) {
  const Paint paint(colour);
  const Machine& m = report.machine;
  fmt::print(out, "{}, {} thread{}, kernels {}, {}\n\n", m.cpu, m.threads, m.threads == 1 ? "" : "s", m.table,
             m.peers.empty() ? "no other library" : m.peers);
  print_limits(out, report, paint);
  if (!report.rows.empty()) {
    out << '\n';
    print_rows(out, report, paint);
    out << "\nshare: our best over the best reading of the limit, taken between the rounds; ratio: ours over "
           "the peer\n";
  }
  const std::vector<std::string> notes = notes_of(report);
  if (report.rows.empty() && !notes.empty()) out << '\n';
  for (const std::string& note : notes) out << note << '\n';
}

void print_json(std::ostream& out, const Report& report) {
  const Machine& m = report.machine;
  OrderedJson limits = OrderedJson::array(), rows = OrderedJson::array();
  for (int l = 0; l < kLimits; ++l) {
    const bool gpu = of(static_cast<Limit>(l)) == Limits::Of::gpu;
    if (!gpu) limits.push_back(limit_json(report.limits, static_cast<Limit>(l), On::one));
    if (gpu || m.threads > 1) limits.push_back(limit_json(report.limits, static_cast<Limit>(l), On::all));
  }
  for (const Row& row : report.rows) rows.push_back(row_json(report, row));
  const OrderedJson all{
      {"machine",
       {{"cpu", m.cpu}, {"threads", m.threads}, {"kernels", m.table}, {"peers", m.peers}, {"busy", report.busy()}}},
      {"limits", limits},
      {"rows", rows},
      {"notes", notes_of(report)}};
  out << all.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
}

}  // namespace qkv::bench

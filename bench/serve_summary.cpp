#include "serve_summary.h"

#include <fmt/format.h>

namespace qkv::bench {
namespace {

constexpr double kAtLeast = 0.95;         // of the Scheduler's tokens per second
constexpr double kLookingAtLeast = 0.90;  // of the server's

}  // namespace

Json Summary::json() const {
  const StreamTimes times = all_times();
  const auto both = [](const std::vector<double>& seconds) -> Json {
    return {{"p50", 1e3 * quantile(seconds, 0.5)}, {"p99", 1e3 * quantile(seconds, 0.99)}};
  };
  return {{"device", device},
          {"preset", options.preset},
          {"weights", weights},
          {"clients", options.clients},
          {"slots", options.slots},
          {"requests", options.requests},
          {"scheduler_at_once_tokens_per_second", at_once()},
          {"scheduler_in_turn_tokens_per_second", in_turn()},
          {"server_tokens_per_second", served()},
          {"looking_tokens_per_second", looking()},
          {"ratio", median_of(ratios())},
          {"ratio_at_least", kAtLeast},
          {"ratio_to_at_once", median_of(ratios_at_once())},
          {"look_ratio", median_of(look_ratios())},
          {"look_ratio_at_least", kLookingAtLeast},
          {"passes",
           {{"at_once", rounds.front().at_once.passes},
            {"in_turn", rounds.front().in_turn.passes},
            {"server", rounds.front().served.passes},
            {"looking", rounds.front().looking.passes}}},
          {"first_token_ms", both(times.first)},
          {"per_token_ms", both(times.next)},
          {"cpu_ratio", median_of(cpu_ratios(&Round::served))},
          {"looking_cpu_ratio", median_of(cpu_ratios(&Round::looking))},
          {"server_cpu_us_per_token", cpu(&Round::served)},
          {"looking_cpu_us_per_token", cpu(&Round::looking)},
          {"client_cpu_us_per_token", client_cpu()}};
}

std::string Summary::text() const {
  const StreamTimes times = all_times();
  const Round& first = rounds.front();
  std::string out = fmt::format(
      "{}, {} ({:.0f} M weights, random, bf16), {} clients, {} slots, {} requests, prompts of {}, {} to {} new tokens, "
      "medians of {} rounds\n",
      device, options.preset, number(weights) / 1e6, options.clients, options.slots, options.requests, options.prompt,
      options.tokens / 2, options.tokens / 2 + options.tokens, options.rounds);
  const auto line = [&](const char* what, const std::vector<double>& speeds, int64_t passes, const std::string& more) {
    out += fmt::format("{:26}{:10.1f} tokens/s, {} passes{}\n", what, median_of(speeds), passes, more);
  };
  line("Scheduler, all at once", at_once(), first.at_once.passes, "");
  line("Scheduler, callers in turn", in_turn(), first.in_turn.passes, "");
  line("server", served(), first.served.passes,
       fmt::format(", ratio {:.3f} (at least {:.2f}), to all at once {:.3f}", median_of(ratios()), kAtLeast,
                   median_of(ratios_at_once())));
  line("all look inside", looking(), first.looking.passes,
       fmt::format(", ratio to the server {:.3f} (at least {:.2f})", median_of(look_ratios()), kLookingAtLeast));
  const auto both = [](const std::vector<double>& seconds) {
    return fmt::format("{:10.2f} ms, p99 {:.2f}\n", 1e3 * quantile(seconds, 0.5), 1e3 * quantile(seconds, 0.99));
  };
  out += fmt::format("{:26}", "time to first token") + both(times.first);
  out += fmt::format("{:26}", "time per token") + both(times.next);
  out += fmt::format("{:26}{:10.3f} of the Scheduler's for a token, {:.3f} with looks\n", "CPU of all threads",
                     median_of(cpu_ratios(&Round::served)), median_of(cpu_ratios(&Round::looking)));
  out += fmt::format("{:26}{:10.1f} us a token, {:.1f} with looks\n", "CPU beside the engine",
                     median_of(cpu(&Round::served)), median_of(cpu(&Round::looking)));
  return out + fmt::format("{:26}{:10.1f} us a token\n", "CPU of the clients", median_of(client_cpu()));
}

}  // namespace qkv::bench

// qkv eval on a text: perplexity over windows.
#include <fmt/format.h>

#include <algorithm>

#include "data/text_windows.h"
#include "judge/eval_run.h"

namespace qkv::app {
namespace {

constexpr int64_t kUsualWindow = 512;

}  // namespace

void eval_text(EvalRun& run, const std::string& text) {
  const EvalOptions& options = run.options;
  const Encoding whole = run.model.tokenizer().encode_full(
      text, {.add_specials = false, .read_specials = false, .unit = OffsetUnit::bytes});
  const std::vector<int32_t>& ids = whole.ids;
  // Windows divide the bytes of the text among them.
  const auto first_byte = [&](int64_t token) {
    if (token == 0) return int64_t{0};
    return token == std::ssize(ids) ? std::ssize(text)
                                    : static_cast<int64_t>(whole.offsets[static_cast<size_t>(token)].begin);
  };
  const int64_t length = options.window > 0 ? options.window : std::min(kUsualWindow, run.context);
  QKV_CHECK(length <= run.context, "--window is ", length, " but a text has at most ", run.context, " tokens",
            Hint("use --window ", run.context, " or less"));
  const int64_t stride = options.stride > 0 ? options.stride : length - 1;
  QKV_CHECK(stride < length, "a stride of ", stride, " tokens but a window of ", length,
            Hint("use a stride of ", length - 1, " or less, or a longer window"));
  // Without BOS the last token of a window is the first of the next one: it predicts what follows it.
  WindowOptions cut{.length = length};
  if (run.bos) cut.before = {*run.bos};
  cut.overlap = length - std::ssize(cut.before) - stride;
  const std::vector<TextWindow> windows = windows_of(std::ssize(ids), cut);
  QKV_CHECK(!windows.empty(), options.data, " has ", ids.size(), " tokens, too few to score one",
            Hint("give a longer text"));
  std::vector<Tally> tallies;
  for (const TextWindow& w : windows) {
    tallies.push_back({.tokens = w.end - w.begin, .bytes = first_byte(w.end) - first_byte(w.begin)});
  }
  run.report.json = {{"mode", "text"},
                     {"windows", windows.size()},
                     {"window", length},
                     {"stride", stride},
                     {"windows_begin_with", run.bos_json()}};
  run.report.say(fmt::format(
      "{} as a text: {} windows of at most {} tokens, {} of them new{}", options.data, windows.size(), length, stride,
      run.bos ? ", each begins with " + run.bos_name() : "; the text's first token is not scored"));
  run.add_nats(tallies, cut_into_windows(ids, cut));
  run.report.add_likelihood(tallies, "window");
}

}  // namespace qkv::app

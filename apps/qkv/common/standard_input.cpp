#include "common/standard_input.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/error.h"

namespace qkv::app {
namespace {

// The next bytes, at most so many; none at the end.
std::string read_some(size_t most) {
  std::string bytes(most, '\0');
  ssize_t got = -1;
  do got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  while (got < 0 && errno == EINTR);
  QKV_CHECK(got >= 0, "cannot read standard input: ", std::generic_category().message(errno),
            Hint("give it a file:  < FILE"));
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

constexpr size_t kBlock = size_t{1} << 16;

}  // namespace

std::string read_standard_input() {
  std::string text;
  for (std::string more; !(more = read_some(kBlock)).empty();) {
    QKV_CHECK(text.size() + more.size() <= kLargestInput, "standard input has more than ", kLargestInput,
              " bytes, the most that is read as one text", Hint("cut it into smaller texts; does it end at all?"));
    text += more;
  }
  return text;
}

std::optional<std::string> InputLines::next() {
  std::string line;
  if (begin_ == block_.size() && !refill()) return std::nullopt;
  ++line_;
  while (true) {
    const std::string_view rest = std::string_view(block_).substr(begin_);
    const size_t end = std::min(rest.find('\n'), rest.size());
    QKV_CHECK(line.size() + end <= kLongestLine, "line ", line_, " of standard input has more than ", kLongestLine,
              " bytes", Hint("cut it into shorter lines"));
    line += rest.substr(0, end);
    begin_ += end;
    if (end < rest.size()) {
      ++begin_;  // the line end
      return line;
    }
    if (!refill()) return line;
  }
}

bool InputLines::ready() const {
  if (begin_ < block_.size()) return true;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, 0) != 0;
}

bool InputLines::refill() {
  block_ = read_some(kBlock);
  begin_ = 0;
  return !block_.empty();
}

}  // namespace qkv::app

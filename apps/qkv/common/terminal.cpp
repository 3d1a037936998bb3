#include "common/terminal.h"

#include <unistd.h>

#include <iostream>
#include <random>
#include <streambuf>

#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv::app {
namespace {

// Stands before our own codes in place of ESC: bytes that are no UTF-8, drawn anew by each process, so that no file,
// model or argument can hold them.
const std::string& code_mark() {
  static const std::string mark = [] {
    std::random_device random;
    std::string bytes;
    for (int i = 0; i < 16; ++i) bytes += static_cast<char>(0xF8 + random() % 8);
    return bytes;
  }();
  return mark;
}

// Bytes of a character at the end of a text that lacks some.
size_t begun_character(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    const std::string_view end = text.substr(text.size() - length);
    if (utf8_length(end) == 0 && is_utf8_prefix(end)) return length;
  }
  return 0;
}

}  // namespace

std::string terminal_code(std::string_view code) {
  return code_mark() + std::string(code);
}

class SafeOutput::Filter : public std::streambuf {
 public:
  explicit Filter(std::ostream& stream) : stream_(stream), to_(stream.rdbuf(this)) {}
  ~Filter() override {
    send(escaped(held_));
    stream_.flush();
    stream_.rdbuf(to_);
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    held_.append(text, static_cast<size_t>(count));
    return drain() ? count : 0;
  }
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    held_ += traits_type::to_char_type(c);
    return drain() ? c : traits_type::eof();
  }
  int sync() override { return to_->pubsync(); }

 private:
  // Sends everything but a character that lacks bytes. A code comes whole: it is printed as one string.
  bool drain() {
    std::string safe;
    std::string_view rest = held_;
    for (size_t at = 0; (at = rest.find(code_mark())) != rest.npos;) {
      safe += escaped(rest.substr(0, at));
      rest.remove_prefix(at + code_mark().size());
      const size_t code = std::min(rest.find_first_not_of("[;0123456789"), rest.size() - 1) + 1;
      safe.append("\x1b").append(rest.substr(0, code));
      rest.remove_prefix(code);
    }
    const size_t whole = rest.size() - begun_character(rest);
    safe += escaped(rest.substr(0, whole));
    held_ = std::string(rest.substr(whole));
    return send(safe);
  }
  bool send(std::string_view text) {
    const auto count = static_cast<std::streamsize>(text.size());
    return to_->sputn(text.data(), count) == count;
  }

  std::ostream& stream_;
  std::streambuf* to_;
  std::string held_;
};

SafeOutput::SafeOutput() : err_(std::make_unique<Filter>(std::cerr)) {
  if (::isatty(STDOUT_FILENO) == 1) out_ = std::make_unique<Filter>(std::cout);
}

SafeOutput::~SafeOutput() = default;

}  // namespace qkv::app

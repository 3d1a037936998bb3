#include "text/documents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {

// Lines of one file, read a block at a time.
class LineReader {
 public:
  LineReader(const std::string& file, const SourceOptions& options)
      : name_(file == "-" ? "standard input" : file), max_bytes_(options.max_bytes), cut_option_(options.cut_option) {
    fd_ = file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    QKV_CHECK(fd_ >= 0, "cannot open ", file, ": ", std::generic_category().message(errno), Hint(errno_hint(errno)));
    refill();
    if (available().starts_with("\xEF\xBB\xBF")) begin_ += 3;
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }

  // Appends the next line without its line end; false at the end of the file. `before` bytes of the document were
  // read already (for the size limit).
  bool append_line(std::string& text, size_t before = 0) {
    if (available().empty() && !refill()) return false;
    ++line_;
    while (true) {
      const std::string_view rest = available();
      const size_t end = std::min(rest.find('\n'), rest.size());
      take(text, rest.substr(0, end), before);
      if (end < rest.size()) {
        ++begin_;  // the line end
        return true;
      }
      if (!refill()) return true;
    }
  }

  // Appends everything.
  void append_rest(std::string& text) {
    line_ = 1;
    while (!available().empty() || refill()) take(text, available(), 0);
  }

  const std::string& name() const { return name_; }
  uint64_t line() const { return line_; }  // of the line read last, from 1
  uint64_t bytes() const { return bytes_; }
  uint64_t consumed() const { return bytes_ - available().size(); }

 private:
  static constexpr size_t kBlock = size_t{1} << 18;

  std::string_view available() const { return std::string_view(block_).substr(begin_); }

  void take(std::string& text, std::string_view piece, size_t before) {
    QKV_CHECK(before + text.size() + piece.size() <= max_bytes_, name_, ", line ", line_,
              ": the document is longer than ", max_bytes_, " bytes, the limit",
              Hint("are its ends marked? A document ends at a blank line, a line or with its file",
                   cut_option_ == nullptr ? "" : ", as chosen with ", cut_option_ == nullptr ? "" : cut_option_));
    text += piece;
    begin_ += piece.size();
  }

  bool refill() {
    block_.resize(kBlock);
    ssize_t got = -1;
    do got = ::read(fd_, block_.data(), block_.size());
    while (got < 0 && errno == EINTR);
    const int code = errno;
    block_.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    QKV_CHECK(got >= 0, "cannot read ", name_, ": ", std::generic_category().message(code),
              Hint(code == EISDIR ? "name a file inside it, or - for standard input" : errno_hint(code)));
    begin_ = 0;
    bytes_ += block_.size();
    return got > 0;
  }

  std::string name_;
  size_t max_bytes_;
  const char* cut_option_;
  int fd_ = -1;
  std::string block_;
  size_t begin_ = 0;  // of the unread part of the block
  uint64_t line_ = 0, bytes_ = 0;
};

namespace {

void drop_carriage_return(std::string& line) {
  if (line.ends_with('\r')) line.pop_back();
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == text.npos;
}

}  // namespace

DocumentReader::DocumentReader(std::vector<std::string> files, SourceOptions options)
    : files_(std::move(files)), options_(std::move(options)) {
  QKV_CHECK(options_.source_field.empty() == options_.target_field.empty(),
            "pairs need a source field and a target field, but only one is named", Hint("name both, or none"));
  bool all_known = true;
  for (const std::string& file : files_) {
    struct stat info {};
    const bool is_pipe = file == "-";
    QKV_CHECK(is_pipe || ::stat(file.c_str(), &info) == 0, "cannot open ", file, ": ",
              std::generic_category().message(errno), Hint(errno_hint(errno)));
    QKV_CHECK(!S_ISDIR(info.st_mode), file, " is a folder but must be a file", Hint("name the files inside it"));
    all_known = all_known && S_ISREG(info.st_mode);
    total_bytes_ += static_cast<uint64_t>(info.st_size);
    sizes_.push_back(S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0);
  }
  if (!all_known) total_bytes_ = 0;
}

DocumentReader::~DocumentReader() = default;

uint64_t DocumentReader::bytes_read() const {
  return earlier_bytes_ + (reader_ ? reader_->bytes() : 0);
}

std::string DocumentReader::place(uint64_t line) const {
  return fmt::format("{}, line {}", reader_->name(), line);
}

bool DocumentReader::next(Document& document) {
  while (true) {
    if (reader_ && next_in_file(document)) {
      document.file = next_file_ - 1;
      document.line = first_line_;
      const uint64_t size = sizes_[document.file];
      document.before = size == 0 ? 0 : static_cast<double>(first_byte_) / static_cast<double>(size);
      return true;
    }
    earlier_bytes_ = bytes_read();
    reader_.reset();
    if (next_file_ == files_.size()) return false;
    reader_ = std::make_unique<LineReader>(files_[next_file_++], options_);
  }
}

bool DocumentReader::next_in_file(Document& document) {
  if (options_.format == DataFormat::text) {
    document.target.clear();
    while (next_text(document.text)) {
      if (!is_blank(document.text)) {
        check_utf8(document.text);
        return true;
      }
      skipped_ += options_.cut == DocumentCut::file ? 1 : 0;
    }
    return false;
  }
  while (true) {
    line_.clear();
    first_byte_ = reader_->consumed();
    if (!reader_->append_line(line_)) {
      check_tsv();
      return false;
    }
    first_line_ = reader_->line();
    drop_carriage_return(line_);
    if (is_blank(line_)) continue;
    check_utf8(line_);
    if (options_.format == DataFormat::tsv) {
      if (!parse_tsv_line(line_, document)) continue;
    } else {
      parse_json_line(line_, document);
    }
    if (!is_blank(document.text) && !(options_.pairs() && is_blank(document.target))) return true;
    ++skipped_;
  }
}

// Also returns blank texts; the caller skips them.
bool DocumentReader::next_text(std::string& text) {
  text.clear();
  first_line_ = reader_->line() + 1;
  first_byte_ = reader_->consumed();
  if (options_.cut == DocumentCut::file) {
    if (reader_->line() > 0) return false;
    reader_->append_rest(text);
    return true;
  }
  if (options_.cut == DocumentCut::line) {
    if (!reader_->append_line(text)) return false;
    drop_carriage_return(text);
    return true;
  }
  bool any = false;
  while (true) {
    line_.clear();
    if (!reader_->append_line(line_, text.size())) return any;
    any = true;
    drop_carriage_return(line_);
    if (is_blank(line_)) return true;
    if (!text.empty()) text += '\n';
    text += line_;
  }
}

void DocumentReader::parse_json_line(const std::string& line, Document& document) {
  const Json json = parse_json(line, place(first_line_));
  QKV_CHECK(json.is_object(), place(first_line_), ": the line must be a JSON object",
            Hint("such as {\"text\": \"...\"}"));
  const auto text_of = [&](const std::string& field) {
    if (!json.contains(field)) {
      std::vector<std::string_view> known;
      for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) known.push_back(key);
      const std::string near = nearest_key(field, known);
      QKV_FAIL(place(first_line_), ": no field ", printable(field),
               Hint(!near.empty()                      ? "is it " + printable(near) + "?"
                    : options_.field_option != nullptr ? std::string("name the field with ") + options_.field_option
                                                       : "each line must be an object with this field"));
    }
    const Json& value = json[field];
    QKV_CHECK(value.is_string(), place(first_line_), ": field ", printable(field), " is ", value.type_name(),
              " but must be a text", Hint("name another field, or leave such lines out"));
    return value.get<std::string>();
  };
  document.text = text_of(options_.pairs() ? options_.source_field : options_.field);
  document.target = options_.pairs() ? text_of(options_.target_field) : "";
}

// False if the line is not a pair. Large collections have a few such lines, with a tab inside a sentence.
bool DocumentReader::parse_tsv_line(std::string_view line, Document& document) {
  ++tsv_lines_;
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  const size_t tab = line.find('\t');
  document.text = line.substr(0, tab);
  document.target = tabs > 0 ? line.substr(tab + 1) : "";
  if (tabs == 1 && !is_blank(document.text) && !is_blank(document.target)) return true;
  ++skipped_;
  if (tsv_wrong_++ == 0) {
    const char* empty = is_blank(document.text) ? "source" : "target";
    first_wrong_ = tabs == 1 ? fmt::format("{}: the {} is empty", place(first_line_), empty)
                             : fmt::format("{}: {} column{} but there must be 2, source<TAB>target", place(first_line_),
                                           tabs + 1, tabs == 0 ? "" : "s");
  }
  constexpr uint64_t kSurelyMany = 100;
  if (tsv_wrong_ > kSurelyMany) check_tsv();
  return false;
}

// With more malformed lines the file is probably in another format.
void DocumentReader::check_tsv() const {
  constexpr uint64_t kOneIn = 100;
  if (tsv_wrong_ == 0) return;
  QKV_CHECK(tsv_wrong_ * kOneIn <= tsv_lines_, first_wrong_, " (", tsv_wrong_, " of ", tsv_lines_,
            " lines are no pairs)",
            Hint("one in ", kOneIn, " may be left out; cut -f1,2 takes the first two columns of a wider file"));
  warn_once("no pair",
            fmt::format("{}; {} of {} lines are no pairs and left out", first_wrong_, tsv_wrong_, tsv_lines_));
}

void DocumentReader::check_utf8(std::string_view text) {
  size_t good = 0;
  while (good < text.size()) {
    const size_t length = utf8_length(text.substr(good));
    if (length == 0) {
      const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(good), '\n');
      QKV_FAIL(place(first_line_ + static_cast<uint64_t>(lines)), ": not UTF-8: ", printable(text.substr(good, 8)),
               Hint("convert it first, for example with  iconv -f GB18030 -t UTF-8"));
    }
    good += length;
  }
}

}  // namespace qkv

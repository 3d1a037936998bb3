// Documents out of text, JSONL and TSV files or a pipe, one at a time: memory is bounded by the longest document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class DataFormat { text, jsonl, tsv };

// Where a document of plain text ends.
enum class DocumentCut { line, blank_line, file };

struct SourceOptions {
  DataFormat format = DataFormat::text;
  DocumentCut cut = DocumentCut::blank_line;
  std::string field = "text";              // JSONL
  std::string source_field, target_field;  // JSONL of pairs: both, instead of field
  size_t longest = size_t{64} << 20;       // bytes of a document or line; a longer one is an Error

  bool pairs() const { return format == DataFormat::tsv || (format == DataFormat::jsonl && !source_field.empty()); }
};

struct Document {
  std::string text;
  std::string target;  // of a pair
};

class LineReader;

// Texts must be UTF-8. A byte order mark at the start of a file and carriage returns at line ends are no text;
// documents without text are left out, and of TSV up to one line in a hundred that is no pair, with a warning. Errors
// name file and line.
class DocumentReader {
 public:
  // "-" is standard input.
  DocumentReader(std::vector<std::string> files, SourceOptions options);
  ~DocumentReader();

  bool next(Document& document);  // false at the end

  uint64_t bytes_read() const;
  uint64_t total_bytes() const { return total_bytes_; }  // 0 where a pipe hides it
  uint64_t left_out() const { return left_out_; }

 private:
  bool next_in_file(Document& document);
  bool next_text(std::string& text);
  void parse_json_line(const std::string& line, Document& document);
  bool parse_tsv_line(std::string_view line, Document& document);
  void check_tsv() const;
  void check_utf8(std::string_view text);
  std::string place(uint64_t line) const;

  std::vector<std::string> files_;
  SourceOptions options_;
  size_t next_file_ = 0;
  std::unique_ptr<LineReader> reader_;
  std::string line_;
  uint64_t first_line_ = 0;  // of the document being read
  uint64_t earlier_bytes_ = 0, total_bytes_ = 0, left_out_ = 0;
  uint64_t tsv_lines_ = 0, tsv_wrong_ = 0;
  std::string first_wrong_;  // where and how the first line that is no pair is none
};

}  // namespace qkv

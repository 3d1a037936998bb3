// report_page FILE: the page of the report in FILE, to standard output, for the browser tests.
#include <exception>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "inspect/report/report_html.h"

int main(int argc, char** argv) {
  try {
    QKV_CHECK(argc == 2, "usage: report_page FILE");
    const size_t limit = qkv::JsonLimits{}.bytes;
    std::cout << qkv::report_html(
        qkv::parse_json(qkv::read_file(argv[1], limit), argv[1], {.bytes = limit, .tree = 20 * limit}));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

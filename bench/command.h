// Shared by the benchmark programs: parses the command line, runs, and reports failures with the project's exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "base/error.h"

namespace qkv::bench {

inline int complain(const std::string& text, int code) {
  std::cerr << "qkv: " << text << '\n';
  return code;
}

template <class Work>
int run_command(CLI::App& app, int argc, char** argv, Work&& work) {
  constexpr int kWrongInput = 2, kInternal = 3;
  try {
    app.parse(argc, argv);
    work();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return complain(std::string(error.what()) + "\n  hint: see  ./" + app.get_name() + " --help", kWrongInput);
  } catch (const Error& error) {
    return complain(error.what(), error.kind() == Error::Kind::input ? kWrongInput : kInternal);
  } catch (const std::exception& error) {
    return complain(std::string("unexpected failure: ") + error.what(), kInternal);
  }
  std::cout.flush();
  if (std::cout) return 0;
  return complain("could not write the output\n  hint: the disk is full or the reader went away", kWrongInput);
}

}  // namespace qkv::bench

// One function a command, each in its own file: it adds its subcommand, whose callback does the work.
#pragma once

#include <CLI/CLI.hpp>

namespace qkv::app {

// Thrown when everything is printed and the answer is no (verify, compare): exit code 1.
struct AnswerNo {};

void add_chat(CLI::App& app);
void add_convert(CLI::App& app);
void add_demo(CLI::App& app);
void add_cut(CLI::App& app);
void add_data(CLI::App& app);
void add_data_stats(CLI::App& data);  // a part of data
void add_eval(CLI::App& app);
void add_heads(CLI::App& app);
void add_info(CLI::App& app);
void add_look(CLI::App& app);
void add_movie(CLI::App& app);
void add_new(CLI::App& app);
void add_quantize(CLI::App& app);
void add_route(CLI::App& app);
void add_run(CLI::App& app);
void add_score(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_train(CLI::App& app);
void add_translate(CLI::App& app);
void add_twins(CLI::App& app);
void add_verify(CLI::App& app);
void add_world(CLI::App& app);

}  // namespace qkv::app

// One function per command, each in its own file: it adds its subcommand, whose callback does the work.
#pragma once

#include "common/command.h"

namespace qkv::app {

// Thrown when everything is printed and the answer is no (verify, lab): exit code 1.
struct AnswerNo {};

void add_align(Command app);
void add_attribute(Command app);
void add_chat(Command app);
void add_completion(Command app, const CommandInfo& program);
void add_convert(Command app);
void add_demo(Command app);
void add_cut(Command app);
void add_data(Command app);
void add_data_stats(Command data);  // a part of data
void add_eval(Command app);
void add_heads(Command app);
void add_help(Command app, const CommandInfo& program);
void add_info(Command app);
void add_lab(Command app);
void add_lens(Command app);
void add_look(Command app);
void add_models(Command app);
void add_movie(Command app);
void add_new(Command app);
void add_patch(Command app);
void add_quantize(Command app);
void add_route(Command app);
void add_run(Command app);
void add_score(Command app);
void add_serve(Command app);
void add_taps(Command app);
void add_tokenize(Command app);
void add_tokenizer(Command app);
void add_train(Command app);
void add_translate(Command app);
void add_twins(Command app);
void add_verify(Command app);
void add_version(Command app);
void add_world(Command app);

}  // namespace qkv::app

// Parts of the demo that it shows of more than one model.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "common/drawing.h"
#include "inspect/report/estimate.h"
#include "open/open_model.h"
#include "see/demo_training.h"

namespace qkv::app {

// A heading, and a text of a model below it.
void print_paragraph(const char* heading, Ink ink, const std::string& text);
void print_role(const std::string& head, std::string_view role, const Estimate& score, bool chinese);

// The first text that is long enough to be continued, otherwise the first.
const TokenText& text_to_continue(std::span<const TokenText> texts);
// Prints the beginning of a text, how the model goes on, and how the text does: {"prompt", "text"}.
Json show_writing(const DemoOptions& options, const OpenModel& model, const TokenText& text);

// The built-in model `world`, before the demo trains its own: what it writes and the best head of each role. Without it a
// line says how it is made, and the result is null.
Json show_builtin(const DemoOptions& options);

}  // namespace qkv::app

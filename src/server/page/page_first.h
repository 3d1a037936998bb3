// What the page shows before it asks anything: a text worth looking at, what is seen in it, and what the model writes.
#pragma once

#include "server/page/page_routes.h"

namespace qkv::server {

// Texts in which something happens, for this model in one language: a capital that finds its country, a pronoun that
// finds its name, words that are said again.
const std::vector<std::string>& page_examples(PageModel& model, bool chinese);

// The report of the first model's best example, with "answer" and "models". Tries the examples once.
Json first_look(PageParts& page, bool chinese);

}  // namespace qkv::server

// The few values of a recipe that the page can change.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "server/requests/fields.h"

namespace qkv::server {

// layers, heads, width, language, seed and steps, as far as the recipe has them.
OrderedJson knobs_of(const Json& recipe);

// Whether the page offers a recipe: a decoder whose knobs it knows, trained on the built-in world.
bool has_knobs(const Json& recipe);

// KEY=VALUE for qkv train --set, from the knobs that a request turns. An ApiError 400 names one that cannot be so.
std::vector<std::string> turned_knobs(const Json& recipe, const Fields& asked);

}  // namespace qkv::server

// "response_format": texts of a certain form.
#pragma once

#include <functional>
#include <memory>

#include "infer/token_filter.h"
#include "server/fields.h"
#include "server/served_model.h"

namespace qkv::server {

// Makes the filter that holds a text to the format, one for each text; empty for plain text. `format`: {"type": ...}.
std::function<std::shared_ptr<TokenFilter>()> filter_maker(const Fields& format, const ServedModel& model);

}  // namespace qkv::server

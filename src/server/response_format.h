// "response_format": texts of a certain form.
#pragma once

#include <memory>

#include "infer/grammar/token_mask.h"
#include "server/fields.h"
#include "server/served_model.h"

namespace qkv::server {

// What holds a text to the format; null for plain text. `format`: {"type": ...}; `field`: its name in errors.
std::shared_ptr<const grammar::TokenMasks> constraint_of(const Fields& format, const std::string& field,
                                                         const ServedModel& model);

}  // namespace qkv::server

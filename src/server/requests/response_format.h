// "response_format", and other grammars that a request holds its texts to.
#pragma once

#include <functional>
#include <memory>

#include "infer/grammar/budget.h"
#include "infer/grammar/token_mask.h"
#include "server/models/served_model.h"
#include "server/requests/fields.h"

namespace qkv::server {

// What holds a text to the format; null for plain text. `format`: {"type": ...}; `field`: its name in errors.
std::shared_ptr<const grammar::TokenMasks> constraint_of(const Fields& format, const std::string& field,
                                                         const ServedModel& model, Budget& budget);

// The masks of a grammar, or null if it is; what is wrong with a client's schema is an ApiError 400 at `field`.
std::shared_ptr<const grammar::TokenMasks> masks_of(const std::function<grammar::GrammarPtr()>& make,
                                                    const std::string& field, const ServedModel& model);

}  // namespace qkv::server

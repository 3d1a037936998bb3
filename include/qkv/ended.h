// Why a text has ended.
#pragma once

#include <qkv/export.h>

#include <cstdint>

namespace qkv::QKV_INLINE v1 {

enum class Ended : uint8_t {
  not_yet,
  stopped,    // an end token or a stop string
  length,     // as many tokens as asked for
  context,    // the model's context, or the cache, is full
  cancelled,  // by the caller
  failed,     // the error says why
};
QKV_API const char* name_of(Ended ended);  // "not yet", "stop", "length", "context", "cancelled", "failed"

}  // namespace qkv::QKV_INLINEv1

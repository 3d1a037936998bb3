// What the shared library shows, and the version its names carry.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 201709L
#error "the C++ headers of qkv need C++20: compile with -std=c++20 (qkv/c.h is plain C)"
#endif

#define QKV_VERSION_MAJOR 0
#define QKV_VERSION_MINOR 1
#define QKV_VERSION_PATCH 0

#define QKV_API __attribute__((visibility("default")))
#define QKV_HIDDEN __attribute__((visibility("hidden")))

// Users see qkv::Model. The library itself has types of the same names inside, so there the names are qkv::v1::Model;
// both are the same to the linker.
#ifdef QKV_INTERNAL
#define QKV_INLINE
#else
#define QKV_INLINE inline
#endif

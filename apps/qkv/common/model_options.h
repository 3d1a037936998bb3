// Options of every command that opens a model, and of those that run it with caches.
#pragma once

#include <string>

#include "api/inside.h"
#include "common/command.h"
#include "common/compute_options.h"
#include "open/open_model.h"

namespace qkv::app {

struct ModelOptions {
  std::string path, dtype = "auto";
  ComputeOptions compute;
};
enum class ModelUse : uint8_t { runs, looks };  // what --dtype auto is for
// The argument MODEL and --dtype, --device, --threads.
void add_model_options(Command command, ModelOptions& options, ModelUse use = ModelUse::runs);

struct CacheOptions {
  std::string cache = "auto";
  int64_t context = 0;  // tokens of one text; 0: as many as the model was made for, at most kUsualContext
};
// --cache and --context.
void add_cache_options(Command command, CacheOptions& options);

// Most tokens of one text, prompt included.
int64_t context_of(const OpenModel& model, const CacheOptions& options);

// Every command opens its model so; inside(model) is what it runs, looking_inside(model) what it draws and measures with.
// `decoded`: blocks of weights become plain numbers.
api::Model open_library(const ModelOptions& options, bool decoded = false);
api::Model open_library(const ModelOptions& options, const CacheOptions& cache, int64_t texts);

// For the server, which opens its models itself.
OpenOptions open_options(const ModelOptions& options, const CacheOptions& cache, int64_t texts);

std::optional<DType> chosen_cache_type(const CacheOptions& options);  // none: auto

}  // namespace qkv::app

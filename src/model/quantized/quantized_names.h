// Model folders with weights in q8 and q4:
//
//   config.json        as Hugging Face spells it, with
//                      "quantization_config": {"quant_method": "qkv", "weights": {"layers.0.attn.q": "q4/64", ...}}
//   model.safetensors  every weight under its name in weight_list. Those the config lists are U8 [bytes] in the layout
//                      of core/panels.h, cache-aligned in the file; the others are plain
#pragma once

#include <map>

#include "model/checkpoint/tensor_names.h"
#include "model/families/config.h"

namespace qkv {

inline constexpr const char* kQuantizationKey = "quantization_config";
inline constexpr const char* kPaddingTensor = "_align";  // aligns the panels to cache lines

bool is_quantized(const Json& config);

std::string format_text(Format format);                                 // "q4/64"; "q8" for one scale per row
Format parse_panels(const std::string& text, const std::string& what);  // an Error that starts with `what`

// Whether panels can hold rows of this many numbers.
bool holds_rows(Format panels, int64_t width);

Json quantization_config(const std::map<std::string, Format>& formats);

// Every weight under its own name; an Error unless the config lists only weights of this model that can be in panels.
TensorNames quantized_names(const ModelSpec& spec, const Json& config, const std::string& what);

}  // namespace qkv

// Llama 1, 2 and 3. Rope scaling is read by read_rope.
#include "model/families/all.h"

namespace qkv::families {

const Family llama{.name = "llama",
                   .architecture = "LlamaForCausalLM",
                   .known_as = "Llama 1 to 3.3, TinyLlama, SmolLM 2, Yi, DeepSeek-LLM",
                   .spec = llama_like,
                   .names = llama_like_names};

}  // namespace qkv::families

// A model, opened by path or name: everything it can do.
#pragma once

#include <qkv/generate.h>
#include <qkv/look.h>
#include <qkv/patch.h>
#include <qkv/tokenizer.h>

namespace qkv::QKV_INLINE v1 {

enum class Device : uint8_t { automatic, cpu, cuda };
// automatic: f32 if all weights are f32, otherwise bf16. What looks inside (read, look, cut, lens, roles, attribute, patch)
// then computes in f32 up to 600 million weights.
enum class Precision : uint8_t { automatic, f32, bf16 };
enum class CacheType : uint8_t { automatic, f32, bf16, i8 };

struct OpenOptions {
  Device device = Device::automatic;  // the GPU if there is one and the model fits into it
  Precision precision = Precision::automatic;
  int threads = 0;                         // 0: as many as the machine allows
  int64_t context = 0;                     // most tokens of one text, prompt included; 0: the model's own, at most 4096
  int64_t texts = 8;                       // room in the caches for so many texts that are written at once; others wait
  CacheType cache = CacheType::automatic;  // of keys and values
  bool decoded = false;                    // blocks of GGUF files become plain numbers: for cut models that are saved
};

struct ModelInfo {
  std::string path;    // of the folder or file, also of a model opened by its name
  std::string family;  // "llama", "gpt2", "t5", ...
  std::string kind;    // "decoder-only", "encoder-only" or "encoder-decoder"
  int64_t parameters = 0, layers = 0, width = 0, heads = 0, vocabulary = 0, context = 0;
  std::string device, precision;
  std::string looking;  // the precision of what looks inside
  int threads = 0;
};

// A handle: copies are the same model. Any thread may call anything; passes of one model come one after the other, and
// texts that are written at the same time share them. After close(), or moved from, every call is a ClosedError.
class QKV_API Model {
 public:
  // A Hugging Face folder, a GGUF file, or a built-in model by its name.
  explicit Model(const std::string& path_or_name, const OpenOptions& options = {});

  ModelInfo info() const;
  Tokenizer tokenizer() const;         // an Error if the model has none; then ids are read and written
  Tokenizer target_tokenizer() const;  // of a model that translates
  bool has_tokenizer() const;
  void close();  // frees everything; what runs is finished first
  bool closed() const;

  // --- writing ---
  Generated generate(const Text& prompt, const GenerateOptions& options = {}, const OnText& on_text = {}) const;
  // Many at once: each text is the one it would be alone.
  std::vector<Generated> generate(const std::vector<Text>& prompts, const GenerateOptions& options = {}) const;
  Generation start(const Text& prompt, const GenerateOptions& options = {}) const;
  std::vector<Generated> search(const Text& prompt, const SearchOptions& options = {}) const;
  // Of an empty text, none.
  std::vector<std::vector<Translation>> translate(const std::vector<std::string>& texts,
                                                  const TranslateOptions& options = {}) const;

  // --- judging ---
  Likelihood likelihood(const Text& text) const;
  std::vector<Likelihood> likelihood(const std::vector<Text>& texts) const;
  // A vector of length 1 for each text.
  std::vector<std::vector<float>> embed(const std::vector<Text>& texts, Pooling pooling = Pooling::usual) const;

  // --- looking ---
  std::vector<TapInfo> taps() const;
  std::vector<std::string> heads() const;
  ReadResult read(const Text& text, const ReadOptions& options = {}) const;
  Looked look(const Text& text, const LookOptions& options = {}) const;
  CutEffect cut(const Cut& cut) const;
  Lens lens(const Data& data) const;
  Lens lens() const;  // on the built-in world, or on its pairs, as cut() without data
  std::vector<HeadRoles> roles(const Data& data) const;
  std::vector<HeadRoles> roles() const;
  Attribution attribute(const Text& text, const AttributeOptions& options = {}) const;
  // Two texts of as many tokens, with different answers: which layer, position and head carries the difference.
  Patched patch(const Text& clean, const Text& corrupt, const PatchOptions& options = {}) const;

  // --- changing ---
  // Writes a new folder: the model as it is, or without some heads. The tokenizer goes along. Returns notes.
  std::vector<std::string> save(const std::string& folder) const;
  std::vector<std::string> save_without(const Cut& cut, const std::string& folder) const;

  struct QKV_HIDDEN Impl;
  explicit Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const;  // ClosedError

 private:
  std::shared_ptr<Impl> impl_;
};

// The models that ship, by name.
struct BuiltinModel {
  std::string name, about, languages;
};
QKV_API std::vector<BuiltinModel> builtin_models();

QKV_API const char* version();

}  // namespace qkv::QKV_INLINEv1

// Forms that older or other converters write: a tensor per expert, a list with a value per layer.
#include "base/expect_error.h"
#include "model/checkpoint/convert.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_support.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

TEST(GgufOlder, OneTensorPerExpertIsTheSameModel) {
  const TempFolder temp;
  const auto whole = temp.path() / "m.gguf", apart = temp.path() / "apart.gguf";
  convert_model(golden("mixtral"), whole, {});
  const Gguf source = Gguf::open(whole);
  GgufMetadata metadata;
  for (const Gguf::Field& field : source.fields()) metadata.add(field);
  std::vector<OutgoingTensor> tensors;
  for (const StoredTensor& entry : source.entries()) {
    const size_t stacked = entry.name.find("_exps.weight");
    if (stacked == entry.name.npos) {
      tensors.push_back(outgoing(entry));
      continue;
    }
    const auto experts = static_cast<size_t>(entry.shape[0]);
    for (size_t e = 0; e < experts; ++e) {
      const auto bytes = entry.bytes.subspan(e * entry.bytes.size() / experts, entry.bytes.size() / experts);
      tensors.push_back({entry.name.substr(0, stacked) + "." + std::to_string(e) + ".weight",
                         entry.dtype,
                         {entry.shape[1], entry.shape[2]},
                         [bytes](ByteSink sink) { sink(bytes); }});
    }
  }
  write_gguf(apart, metadata, tensors);
  convert_model(whole, temp.path() / "a", {});
  convert_model(apart, temp.path() / "b", {});
  EXPECT_TRUE(contents(temp.path() / "a/model.safetensors") == contents(temp.path() / "b/model.safetensors"));
}

TEST(GgufOlder, ListsOfHeadsThatAreAllEqual) {
  const TempFolder temp;
  convert_model(golden("llama"), temp.path() / "m.gguf", {});
  const Gguf source = Gguf::open(temp.path() / "m.gguf");
  const auto with = [&](std::vector<uint32_t> kv) {
    GgufMetadata metadata;
    for (const Gguf::Field& field : source.fields()) {
      if (field.key == "llama.attention.head_count_kv") {
        metadata.add_u32s(field.key, kv);
      } else if (field.key == "llama.attention.head_count") {
        const auto heads = static_cast<uint32_t>(source.integer(field.key));
        metadata.add_u32s(field.key, std::vector<uint32_t>(kv.size(), heads));
      } else {
        metadata.add(field);
      }
    }
    std::vector<OutgoingTensor> tensors;
    for (const StoredTensor& entry : source.entries()) tensors.push_back(outgoing(entry));
    std::filesystem::remove(temp.path() / "lists.gguf");
    write_gguf(temp.path() / "lists.gguf", metadata, tensors);
    return config_of(Gguf::open(temp.path() / "lists.gguf"));
  };
  EXPECT_EQ(with({2, 2}), config_of(source));
  expect_error([&] { with({2, 1}); }, {"head_count_kv is 2 in layer 0 but 1 in layer 1"});
}

}  // namespace
}  // namespace qkv::test

// qkv demo: what this build holds, for a person or as JSON.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "commands.h"

namespace qkv::app {
namespace {

struct Line {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kRooms{
    Line{"base", "errors that say what to do, checked file integers, JSON, threads, random numbers"},
    Line{"io", "safetensors and GGUF files: memory-mapped, every byte range checked before use"},
    Line{"text", "tokenizers equal to the reference's, their training, datasets, the built-in world"},
    Line{"eval", "BLEU, chrF and intervals"},
    Line{"core", "shapes, tensors, the arena, the tape of gradients, the spots where one can look"},
    Line{"kernels", "plain loops, the truth; and faster forms for AVX2 and AVX-512 held to them"},
    Line{"ops", "the operations of a transformer, each with its backward pass beside it"},
    Line{"nn, model", "19 families from the same parts, loaded from Hugging Face folders and GGUF"},
    Line{"infer", "running: many texts at once, each with the tokens it has alone"},
    Line{"dist, train", "from text to a model, exactly resumable, on one machine or many"},
};

constexpr std::array kFollows{
    Line{"looking", "what each head and each layer does, while the model runs at full speed"},
};

constexpr std::array kTry{
    Line{"./qkv train world --out my-world", "trains a small model on the built-in world, in a minute or two"},
    Line{"./qkv run my-world/best \"The cat\"", "lets it go on from there"},
    Line{"./qkv world --lang pairs --lines 3", "small stories in English and Chinese, sentence by sentence"},
    Line{"./qkv verify tests/golden/llama", "a model against what transformers computed, every number"},
    Line{"./qkv info --preset gpt2", "a model as a picture, its parameters and the memory it needs"},
    Line{"./qkv test", "builds everything and proves it: values, gradients, models, text, errors"},
    Line{"./qkv test --asan", "the same under the sanitizers"},
    Line{"./qkv --help", "all commands"},
};

template <size_t N>
void print(std::string_view title, const std::array<Line, N>& lines) {
  std::cout << '\n' << title << '\n';
  for (const Line& line : lines) std::cout << fmt::format("  {:<34} {}\n", line.name, line.text);
}

template <size_t N>
nlohmann::ordered_json as_json(const std::array<Line, N>& lines) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Line& line : lines) out.push_back({{"name", line.name}, {"text", line.text}});
  return out;
}

void demo(bool json) {
  if (json) {
    const nlohmann::ordered_json out{
        {"version", QKV_VERSION}, {"holds", as_json(kRooms)}, {"follows", as_json(kFollows)}, {"try", as_json(kTry)}};
    std::cout << out.dump(2) << '\n';
    return;
  }
  std::cout << "qkv " QKV_VERSION ": a transformer engine you can look into\n";
  print("This build holds", kRooms);
  print("Not here yet, and no command pretends to be", kFollows);
  print("Try", kTry);
}

}  // namespace

void add_demo(CLI::App& app) {
  CLI::App* command = app.add_subcommand("demo", "What this build holds");
  const auto json = std::make_shared<bool>(false);  // lives as long as the callback
  command->add_flag("--json", *json, "Print it as JSON");
  command->callback([json] { demo(*json); });
}

}  // namespace qkv::app

// qkv convert: a model in another form or in other numbers.
#include <fmt/format.h>

#include <iostream>
#include <map>

#include "base/progress.h"
#include "common/commands.h"
#include "open/convert_tokenizer.h"

namespace qkv::app {
namespace {

constexpr const char* kConvertExamples = R"(Examples:
  qkv convert llama --out llama.gguf                    a folder as GGUF, weights as they are
  qkv convert llama --out llama-q8.gguf --dtype q8_0    matrices in blocks of 8 bits
  qkv convert llama.gguf --out llama --dtype bf16       back into a Hugging Face folder
  qkv convert llama --out llama-f32 --dtype f32         another number type only)";

struct ConvertRequest {
  std::string model, out, format, dtype;
};

void run_convert(const ConvertRequest& request) {
  static const std::map<std::string, std::string> kTypes{
      {"", ""}, {"f32", "F32"}, {"bf16", "BF16"}, {"f16", "F16"}, {"q8_0", "Q8_0"}};
  using To = ConvertOptions::To;
  std::unique_ptr<Progress> line;
  const auto progress = [&](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<Progress>("writing " + request.out, total);
    line->update(done);
  };
  const std::vector<std::string> notes = convert_model(request.model, request.out,
                                                       with_tokenizer({.to = request.format == "hf" ? To::hugging_face
                                                                             : request.format == "gguf" ? To::gguf
                                                                                                        : To::by_name,
                                                                       .dtype = kTypes.at(request.dtype),
                                                                       .progress = progress}));
  if (line) line->finish();
  std::cout << request.out << " is written\n";
  for (const std::string& note : notes) std::cout << "note: " << note << '\n';
}

}  // namespace

void add_convert(Command app) {
  const Command command = app.add_command("convert", "Write a model in another format: Hugging Face folder or GGUF");
  auto request = std::make_shared<ConvertRequest>();
  command.add_model("MODEL", request->model, "A Hugging Face folder, a GGUF file, or a built-in model (qkv models)")
      .required();
  command.add_output_folder("--out FILE", request->out, "The folder or file to make; it must not exist yet").required();
  command.add_option("--format", request->format, "Format to write; otherwise as the name in --out ends")
      .one_of({"hf", "gguf"});
  command.add_option("--dtype", request->dtype, "How weights are stored; q8_0 for GGUF only. Otherwise as they are")
      .one_of({"f32", "bf16", "f16", "q8_0"});
  command.footer(kConvertExamples);
  command.callback([request] { run_convert(*request); });
}

}  // namespace qkv::app

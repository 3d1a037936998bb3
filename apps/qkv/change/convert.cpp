// qkv convert: a model in another form or in other numbers.
#include "model/checkpoint/convert.h"

#include <fmt/format.h>

#include <iostream>
#include <map>

#include "base/progress.h"
#include "common/commands.h"

namespace qkv::app {
namespace {

constexpr const char* kExamples = R"(Examples:
  qkv convert models/llama llama.gguf                     a folder as GGUF, weights as they are
  qkv convert models/llama llama-q8.gguf --dtype q8_0     matrices in blocks of 8 bits
  qkv convert llama.gguf models/llama --dtype bf16        back into a Hugging Face folder
  qkv convert models/llama models/llama-f32 --dtype f32   only the numbers)";

struct Request {
  std::string model, out, to, dtype;
};

void run(const Request& request) {
  static const std::map<std::string, std::string> kTypes{
      {"", ""}, {"f32", "F32"}, {"bf16", "BF16"}, {"f16", "F16"}, {"q8_0", "Q8_0"}};
  using To = ConvertOptions::To;
  std::unique_ptr<Progress> line;
  const auto progress = [&](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<Progress>("writing " + request.out, total);
    line->update(done);
  };
  const std::vector<std::string> notes = convert_model(request.model, request.out,
                                                       {.to = request.to == "hf"     ? To::hugging_face
                                                              : request.to == "gguf" ? To::gguf
                                                                                     : To::by_name,
                                                        .dtype = kTypes.at(request.dtype),
                                                        .progress = progress});
  if (line) line->finish();
  std::cout << request.out << " is written\n";
  for (const std::string& note : notes) std::cout << "note: " << note << '\n';
}

}  // namespace

void add_convert(Command app) {
  const Command command = app.add_command("convert", "writes a model in another form: Hugging Face folder or GGUF");
  auto request = std::make_shared<Request>();
  command.add_option("MODEL", request->model, "a Hugging Face folder or a .gguf file").required();
  command.add_option("OUT", request->out, "what to write; must not be there yet").required();
  command.add_option("--to", request->to, "hf or gguf; by OUT's ending if not said").one_of({"hf", "gguf"});
  command.add_option("--dtype", request->dtype, "f32, bf16, f16, or for GGUF q8_0; the model's own if not said")
      .one_of({"f32", "bf16", "f16", "q8_0"});
  command.footer(kExamples);
  command.callback([request] { run(*request); });
}

}  // namespace qkv::app

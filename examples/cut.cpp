// Cuts heads one by one: what each costs, and what the model guesses without it.
//   cut MODEL "The cat sat on the"
#include <qkv/qkv.h>

#include <cmath>
#include <iostream>

int main(int argc, char** argv) try {
  if (argc < 3) return std::cerr << "usage: cut MODEL TEXT\n", 2;
  const qkv::Model model(argv[1]);
  const std::string text = argv[2];

  const auto mean_loss = [&](const qkv::ReadOptions& options) {
    double sum = 0;
    const qkv::ReadResult result = model.read(text, options);
    for (const float nats : result.losses) sum += nats;
    return sum / static_cast<double>(result.losses.size());
  };
  const double whole = mean_loss({.losses = true});
  std::cout << "loss of the text: " << whole << " nats per token\n";
  for (const std::string& head : model.heads()) {
    const double without = mean_loss({.cut = qkv::Cut{.heads = head}, .losses = true});
    std::cout << head << ' ' << std::showpos << without - whole << std::noshowpos << '\n';
  }

  // Over many texts, with an interval.
  qkv::Data data(std::vector<qkv::Text>{text, text + ".", text + "!", text + "?", text + ";", text + ","});
  const qkv::CutEffect effect = model.cut({.heads = model.heads().front(), .data = data});
  std::cout << model.heads().front() << " over " << effect.delta.texts << " texts: " << effect.delta.mean << " ["
            << effect.delta.low << ", " << effect.delta.high << "]\n";

  // An edit of one's own does the same as a cut.
  const qkv::Edit half{"0.attn.z", [](const std::string&, qkv::Shape, std::span<float> z) {
                         for (float& number : z) number /= 2;
                       }};
  std::cout << "all heads of layer 0 at half: " << std::showpos << mean_loss({.edit = {half}, .losses = true}) - whole
            << '\n';
} catch (const qkv::Error& error) {
  std::cerr << error.message() << "\n  hint: " << error.hint() << '\n';
  return 2;
}

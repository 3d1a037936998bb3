// Looks inside one pass: where each head of the last layer looks, what every layer would say, and arrays by name.
//   look MODEL "The cat sat on the"
#include <qkv/qkv.h>

#include <algorithm>
#include <iostream>

int main(int argc, char** argv) try {
  if (argc < 3) return std::cerr << "usage: look MODEL TEXT\n", 2;
  const qkv::Model model(argv[1]);
  const qkv::Looked seen = model.look(argv[2]);
  const std::vector<std::string> tokens = seen.tokens();

  // The attention of the last token, head by head: [query, head, key].
  const std::string layer = "L" + std::to_string(model.info().layers - 1);
  const auto [shape, probs] = seen.view(layer + ".probs");
  const auto queries = static_cast<size_t>(shape[0]), heads = static_cast<size_t>(shape[1]),
             keys = static_cast<size_t>(shape[2]);
  for (size_t head = 0; head < heads; ++head) {
    const auto row = probs.subspan(((queries - 1) * heads + head) * keys, keys);
    const auto most = std::max_element(row.begin(), row.end());
    std::cout << layer << 'H' << head << " looks at '" << tokens[static_cast<size_t>(most - row.begin())] << "' with "
              << *most << '\n';
  }

  // The guess of every layer for what follows.
  for (int64_t level = 0; level < seen.levels(); ++level) {
    const qkv::Rung& rung = seen.ladder(level).back();
    std::cout << (level == 0 ? "embedding" : "layer " + std::to_string(level - 1)) << ": '" << rung.guesses[0].text
              << "' " << rung.guesses[0].p << '\n';
  }

  // Any place of the pass, as it comes by.
  model.read(argv[2], {.see = {{"resid.post", [](const std::string& name, qkv::Shape at, std::span<const float> h) {
                                  std::cout << name << " [" << at[0] << ", " << at[1] << "] begins with " << h[0]
                                            << '\n';
                                }}}});
} catch (const qkv::Error& error) {
  std::cerr << error.message() << "\n  hint: " << error.hint() << '\n';
  return 2;
}

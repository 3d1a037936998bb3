// Continues a text: as it is written, several at once, and ended from another thread.
//   generate MODEL "Once upon a time"
#include <qkv/qkv.h>

#include <chrono>
#include <iostream>
#include <thread>

int main(int argc, char** argv) try {
  if (argc < 3) return std::cerr << "usage: generate MODEL TEXT\n", 2;
  const qkv::Model model(argv[1]);
  const std::string prompt = argv[2];

  // Piece by piece.
  std::cout << prompt;
  model.generate(prompt, {.max_new = 40}, [](std::string_view piece) {
    std::cout << piece << std::flush;
    return true;  // false ends it
  });
  std::cout << "\n\n";

  // Three at once, in the same passes.
  std::vector<qkv::Generation> texts;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    texts.push_back(model.start(prompt, {.max_new = 20, .temperature = 0.8, .seed = seed}));
  }
  for (qkv::Generation& text : texts) {
    const qkv::Generated made = text.wait();
    std::cout << made.tokens.size() << " tokens, " << name_of(made.ended) << ": " << made.text << '\n';
  }

  // Until somebody else has had enough.
  qkv::Generation endless = model.start(prompt);
  std::thread impatient([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    endless.cancel();
  });
  const qkv::Generated made = endless.wait();
  impatient.join();
  std::cout << "\nended: " << name_of(made.ended) << '\n';
} catch (const qkv::Error& error) {
  std::cerr << error.message() << "\n  hint: " << error.hint() << '\n';
  return 2;
}

// A training loop of one's own: a new model learns to repeat, is saved, and goes on from there.
//   train FOLDER
#include <qkv/qkv.h>

#include <algorithm>
#include <iostream>
#include <random>

int main(int argc, char** argv) try {
  if (argc < 2) return std::cerr << "usage: train FOLDER (that is not there yet)\n", 2;
  const std::string folder = argv[1];
  qkv::new_model(R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "bos_token_id": 0, "eos_token_id": 1})",
                 folder, 7);

  qkv::Trainer trainer(folder, {.decay = 0.01});
  std::mt19937 random(1);
  const auto batch = [&] {  // rows of random tokens, said twice
    qkv::Batch made;
    for (int n = 0; n < 16; ++n) {
      std::vector<int32_t> text;
      for (int i = 0; i < 12; ++i) text.push_back(static_cast<int32_t>(2 + random() % 30));
      text.insert(text.end(), text.begin(), text.end());
      made.texts.push_back(text);
    }
    return made;
  };
  for (int step = 0; step < 250; ++step) {
    const double lr = 3e-3 * std::min(1.0, (step + 1) / 20.0);
    const qkv::StepReport report = trainer.step(batch(), lr);
    if (report.step % 50 == 0) std::cout << "step " << report.step << ": loss " << report.loss << '\n';
  }
  trainer.save(folder + "-trained");

  // A row it has never seen, and the first token again: it goes on as it was said.
  const qkv::Model model(folder + "-trained");
  const std::vector<int32_t> row = batch().texts.front();
  const qkv::Generated made = model.generate(std::vector(row.begin(), row.begin() + 14), {.max_new = 6});
  int right = 0;
  for (size_t i = 0; i < made.tokens.size(); ++i) right += made.tokens[i].id == row[14 + i];
  std::cout << "as it was said: " << right << " of " << made.tokens.size() << " tokens\n";
} catch (const qkv::Error& error) {
  std::cerr << error.message() << "\n  hint: " << error.hint() << '\n';
  return 2;
}

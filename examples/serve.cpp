// A server in a thread of this program: OpenAI's clients can ask it while the program does something else.
//   serve MODEL [SECONDS]
#include <qkv/qkv.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

int main(int argc, char** argv) try {
  if (argc < 2) return std::cerr << "usage: serve MODEL [SECONDS]\n", 2;
  qkv::Server server({argv[1]});
  server.start();
  std::cout << server.url() << "/v1/models" << std::endl;
  const qkv::Model model(argv[1]);  // this program's own use of it
  std::cout << model.generate("The", {.max_new = 8}).text << std::endl;
  std::this_thread::sleep_for(std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 60));
  server.stop();
  std::cout << "stopped" << std::endl;
} catch (const qkv::Error& error) {
  std::cerr << error.message() << "\n  hint: " << error.hint() << '\n';
  return 2;
}

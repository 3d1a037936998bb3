// A server in the caller's process: it starts, answers, stops, and says what is wrong. tests/server asks it everything else.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <qkv/serve.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/small_model.h"
#include "base/expect_error.h"

namespace qkv {
namespace {

std::string asked(int port, const std::string& path) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port)), .sin_addr = {}, .sin_zero = {}};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    (void)!::write(socket, request.data(), request.size());
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(socket, piece, sizeof piece)) > 0;) answer.append(piece, static_cast<size_t>(n));
  }
  ::close(socket);
  return answer;
}

TEST(ApiServer, StartsAnswersAndStops) {
  const test::SmallModel small;
  api::Server server({small.path()}, {.open = {.threads = 1}});
  EXPECT_GT(server.port(), 0);
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()));
  server.start();
  EXPECT_THROW(server.start(), BusyError);
  EXPECT_NE(asked(server.port(), "/v1/models").find("\"id\":\"model\""), std::string::npos)
      << asked(server.port(), "/v1/models");
  server.stop();
  EXPECT_EQ(asked(server.port(), "/v1/models"), "") << "nobody listens any more";
  server.stop();
}

TEST(ApiServer, SaysWhatIsWrong) {
  const test::SmallModel small;
  expect_error([&] { api::Server({}); }, {"no model"});
  expect_error([&] { api::Server({small.path()}, {.port = 70000}); }, {"70000"});
  expect_error([&] { api::Server({"no-such-model"}); }, {"no-such-model"});
  const api::Server first({small.path()});
  expect_error([&] { api::Server({small.path()}, {.port = first.port()}); }, {std::to_string(first.port())});
  { api::Server never_started({small.path()}); }
  api::Server moved({small.path()});
  const api::Server other = std::move(moved);
  EXPECT_THROW(moved.port(), ClosedError);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace qkv

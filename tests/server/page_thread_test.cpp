// The thread that looks for the page: who comes first, and what happens to an answer nobody waits for.
#include "server/page/page_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "server/http/api_error.h"

namespace qkv::server {
namespace {

// Notes the order in which answers come.
struct Order {
  std::mutex mutex;
  std::vector<std::string> said;

  void add(const std::string& what) {
    const std::lock_guard lock(mutex);
    said.push_back(what);
  }
};

class Asker : public Exchange {
 public:
  Asker(Order& order, std::string name) : order_(order), name_(std::move(name)) {}
  void respond(HttpResponse response) override {
    order_.add(name_ + " " + std::to_string(response.status));
    answered_.set_value();
  }
  void begin(HttpResponse, std::string) override {}
  void write(std::string) override {}
  void end() override {}
  void when_gone(std::function<void()>) override {}
  bool gone() const override { return gone_; }
  void note(std::string) override {}
  const std::string& id() const override { return name_; }

  void leave() { gone_ = true; }
  void wait() { answered_.get_future().wait(); }

 private:
  Order& order_;
  std::string name_;
  std::atomic<bool> gone_ = false;
  std::promise<void> answered_;
};

TEST(PageThread, ALongAnswerGivesWay) {
  Order order;
  const auto slow = std::make_shared<Asker>(order, "slow"), quick = std::make_shared<Asker>(order, "quick"),
             slower = std::make_shared<Asker>(order, "slower");
  std::promise<void> others;
  PageThread thread;
  thread.ask(slow, [&] {
    others.get_future().wait();
    thread.give_way();
    order.add("slow goes on");
    return HttpResponse{};
  });
  thread.ask(quick, [] { return HttpResponse{}; });
  thread.ask(slower, [&] {  // what is answered meanwhile is answered whole
    thread.give_way();
    return HttpResponse{};
  });
  others.set_value();
  slow->wait();
  EXPECT_EQ(order.said, (std::vector<std::string>{"quick 200", "slower 200", "slow goes on", "slow 200"}));
}

TEST(PageThread, AnAnswerNobodyWaitsForEnds) {
  Order order;
  const auto left = std::make_shared<Asker>(order, "left"), next = std::make_shared<Asker>(order, "next");
  std::promise<void> other;
  PageThread thread;
  thread.ask(left, [&] {
    other.get_future().wait();
    left->leave();
    thread.give_way();
    order.add("it went on");
    return HttpResponse{};
  });
  thread.ask(next, [] { return HttpResponse{}; });
  other.set_value();
  next->wait();
  left->wait();
  EXPECT_EQ(order.said, (std::vector<std::string>{"next 200", "left 503"}));
}

TEST(PageThread, StoppingEndsALongAnswer) {
  Order order;
  const auto slow = std::make_shared<Asker>(order, "slow");
  std::promise<void> began;
  PageThread thread;
  thread.ask(slow, [&]() -> HttpResponse {
    began.set_value();
    while (true) thread.give_way();
  });
  began.get_future().wait();
  thread.stop();
  EXPECT_EQ(order.said, (std::vector<std::string>{"slow 503"}));
}

}  // namespace
}  // namespace qkv::server

#include "server/http/transport.h"

#include <pthread.h>
#include <sys/resource.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "server/http/transport_connection.h"

namespace qkv::server {

using namespace http1;

namespace {

// An Exchange for other threads.
class Answer : public Exchange {
 public:
  Answer(Shared& shared, const std::shared_ptr<Connection>& connection, std::string id)
      : shared_(shared),
        connection_(connection),
        serial_(connection->serial()),
        gone_(connection->gone_flag_),
        id_(std::move(id)) {}

  void respond(HttpResponse response) override {
    on_connection([response = std::move(response)](Connection& c) mutable { c.respond(std::move(response)); });
  }
  void begin(HttpResponse head, std::string ping) override {
    on_connection([head = std::move(head), ping = std::move(ping)](Connection& c) { c.begin(head, ping); });
  }
  void write(std::string part) override {
    on_connection([part = std::move(part)](Connection& c) { c.write(part); });
  }
  void end() override {
    on_connection([](Connection& c) { c.end(); });
  }
  void note(std::string text) override {
    on_connection([text = std::move(text)](Connection& c) mutable { c.note(std::move(text)); });
  }
  void when_gone(std::function<void()> call) override {
    asio::post(shared_.io, [this_serial = serial_, weak = connection_, gone = gone_, call = std::move(call)] {
      const std::shared_ptr<Connection> connection = weak.lock();
      if (*gone || connection == nullptr) return call();
      if (connection->serial() == this_serial) connection->on_gone_ = call;
    });
  }
  bool gone() const override { return *gone_; }
  const std::string& id() const override { return id_; }

 private:
  template <class Work>
  void on_connection(Work work) {
    asio::post(shared_.io, [serial = serial_, weak = connection_, work = std::move(work)]() mutable {
      const std::shared_ptr<Connection> connection = weak.lock();
      if (connection != nullptr && connection->serial() == serial) work(*connection);
    });
  }

  Shared& shared_;
  std::weak_ptr<Connection> connection_;
  uint64_t serial_;
  std::shared_ptr<std::atomic<bool>> gone_;
  std::string id_;
};

// As many as there are descriptors for, with some left for files.
size_t connections_possible(size_t wanted) {
  rlimit limit{};
  constexpr rlim_t kOthers = 32;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min<size_t>(wanted, limit.rlim_cur > kOthers + 8 ? limit.rlim_cur - kOthers : 8);
}

}  // namespace

void http1::Connection::on_request() {
  request_.body = std::move(parser_->get().body());
  begin_exchange();
  auto answer = std::make_shared<Answer>(shared_, shared_from_this(), finished_.id);
  shared_.handler.handle(std::exchange(request_, {}), std::move(answer));
}

class Transport::Impl {
 public:
  Impl(const HttpOptions& options, HttpHandler& handler)
      : shared_{.options = options, .handler = handler}, acceptor_(shared_.io), retry_(shared_.io), clock_(shared_.io) {
    shared_.options.most_connections = connections_possible(options.most_connections);
    open_tls();
    bind();
    accept();
    thread_ = std::thread([this] { shared_.io.run(); });
    ::pthread_setname_np(thread_.native_handle(), "qkv-http");
  }

  ~Impl() { close(); }

  void close() {
    if (!thread_.joinable()) return;
    asio::post(shared_.io, [this] {
      stop_accepting();
      closing_ = true;
      clock_.cancel();
      const auto all = std::move(connections_);
      for (const auto& connection : all) {
        if (const auto open = connection.lock()) open->close();
      }
    });
    // Handlers hold connections; when the last is gone run() has nothing to do.
    thread_.join();
  }

  int port() const { return port_; }
  size_t busy() const { return shared_.busy; }

  void stop_soon() {
    shared_.stopping = true;
    asio::post(shared_.io, [this] { stop_accepting(); });
  }

 private:
  using WeakConnections = std::vector<std::weak_ptr<Connection>>;

  void open_tls() {
    const HttpOptions& o = shared_.options;
    if (o.tls_certificate.empty()) return;
    tls_.emplace(asio::ssl::context::tls_server);
    tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression);
    ErrorCode failed;
    tls_->use_certificate_chain_file(o.tls_certificate, failed);
    QKV_CHECK(!failed, "the certificate ", o.tls_certificate, " cannot be used: ", failed.message(),
              Hint("give a PEM file with the certificate and those it is signed by"));
    tls_->use_private_key_file(o.tls_key, asio::ssl::context::pem, failed);
    QKV_CHECK(!failed, "the key ", o.tls_key, " cannot be used: ", failed.message(),
              Hint("give the PEM file of the key that the certificate was made for"));
  }

  void bind() {
    const HttpOptions& o = shared_.options;
    ErrorCode failed;
    tcp::resolver resolver(shared_.io);
    const auto found = resolver.resolve(o.host, std::to_string(o.port), tcp::resolver::passive, failed);
    QKV_CHECK(!failed && !found.empty(), "the address ", o.host, " is not one of this machine: ", failed.message(),
              Hint("127.0.0.1 serves this machine alone, 0.0.0.0 the network"));
    const tcp::endpoint at = found.begin()->endpoint();
    acceptor_.open(at.protocol(), failed);
    if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor_.set_option(tcp::no_delay(true), failed);  // of every connection accepted
    if (!failed) acceptor_.bind(at, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
    QKV_CHECK(!failed, "cannot listen at ", o.host, " port ", o.port, ": ", failed.message(),
              Hint("is another server running there? --port 0 takes any free port"));
    port_ = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept([this](ErrorCode failed, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (failed) {  // no descriptors left, or the client left already
        retry_.expires_after(std::chrono::milliseconds(50));
        return retry_.async_wait([this](ErrorCode cancelled) {
          if (!cancelled && acceptor_.is_open()) accept();
        });
      }
      welcome(std::move(socket));
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    std::unique_ptr<Stream> stream;
    if (tls_) {
      stream = std::make_unique<TlsStream>(std::move(socket), *tls_);
    } else {
      stream = std::make_unique<Stream>(std::move(socket));
    }
    const auto connection = std::make_shared<Connection>(shared_, std::move(stream));
    connections_.push_back(connection);
    if (connections_.size() == 1) tick();
    if (shared_.open > shared_.options.most_connections) return connection->turn_away(503, "too many connections");
    connection->start();
  }

  // While there are connections, and forgets those that are gone.
  void tick() {
    clock_.expires_after(Connection::kTick);
    clock_.async_wait([this](ErrorCode cancelled) {
      if (cancelled || closing_) return;
      const Clock::time_point now = Clock::now();
      std::erase_if(connections_, [&](const auto& weak) {
        const auto connection = weak.lock();
        if (connection) connection->look_at_clock(now);
        return connection == nullptr;
      });
      if (!connections_.empty()) tick();
    });
  }

  void stop_accepting() {
    ErrorCode ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    for (const auto& weak : connections_) {
      if (const auto connection = weak.lock(); connection && connection->idle()) connection->close();
    }
  }

  Shared shared_;
  std::optional<asio::ssl::context> tls_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_, clock_;
  bool closing_ = false;
  WeakConnections connections_;
  int port_ = 0;
  std::thread thread_;
};

Transport::Transport(const HttpOptions& options, HttpHandler& handler)
    : impl_(std::make_unique<Impl>(options, handler)) {}
Transport::~Transport() = default;

int Transport::port() const {
  return impl_->port();
}

void Transport::close() {
  impl_->close();
}

size_t Transport::busy() const {
  return impl_->busy();
}

void Transport::stop_accepting() {
  impl_->stop_soon();
}

}  // namespace qkv::server

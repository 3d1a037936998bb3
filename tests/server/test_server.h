// A server of tiny models in this process, and a client that does exactly what a test says.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/temp_folder.h"
#include "model/checkpoint/convert.h"
#include "model/initialise.h"
#include "server/server.h"
#include "support/pass.h"

namespace qkv::test {

inline constexpr const char* kGoodKey = "key-of-the-tests-0001";
inline constexpr const char* kOtherKey = "key-of-the-tests-0002";

// Random weights behind small tokenizers, made once: a decoder with a chat template, one without, an encoder and an
// encoder-decoder.
class TinyModels {
 public:
  static const TinyModels& get() {
    static const TinyModels all;
    return all;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  static constexpr const char* kTemplate =
      "{% if tools %}<|im_start|>system\n<tool_call>{{ tools | tojson }}<|im_end|>\n{% endif %}"
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

 private:
  TinyModels() {
    const Json decoder = {{"model_type", "llama"},       {"vocab_size", 608},      {"hidden_size", 32},
                          {"intermediate_size", 64},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
                          {"num_key_value_heads", 2},    {"rms_norm_eps", 1e-5},   {"max_position_embeddings", 512},
                          {"bos_token_id", 0},           {"eos_token_id", 470},    {"rope_theta", 10000.0},
                          {"tie_word_embeddings", false}};
    make("chatty", decoder, "qwen2", 3);
    folder_.write("chatty/chat_template.jinja", kTemplate);
    convert_model(folder_.path() / "chatty", folder_.path() / "half",
                  {.to = ConvertOptions::To::hugging_face, .dtype = "BF16"});
    make("plain", decoder, "qwen2", 4);
    Json deep = decoder;  // 16 heads
    deep["num_hidden_layers"] = 4;
    make("deep", deep, "qwen2", 8);
    Json far = decoder;  // texts whose patterns are not kept, and texts that last for seconds
    far["max_position_embeddings"] = 65536;
    make("long", far, "qwen2", 10);
    Json experts = decoder;  // eight, two for each token
    experts["model_type"] = "mixtral";
    experts["num_local_experts"] = 8;
    experts["num_experts_per_tok"] = 2;
    experts["sliding_window"] = nullptr;
    make("experts", experts, "qwen2", 9);
    make("broken", decoder, "qwen2", 4);
    spoil_embedding(folder_.path() / "broken" / "model.safetensors", 77, 32);
    make("longbroken", far, "qwen2", 4);
    spoil_embedding(folder_.path() / "longbroken" / "model.safetensors", 77, 32);
    Json wide = decoder;  // a cache that fits no machine
    wide["max_position_embeddings"] = int64_t{1} << 30;
    wide["num_key_value_heads"] = 4;
    wide["head_dim"] = 4096;
    wide["num_hidden_layers"] = 8;
    make("wide", wide, "qwen2", 7);
    Json encoder = parse_json(read_file(golden("bert") / "config.json", 1 << 20), "bert");
    encoder["vocab_size"] = 608;
    make("reader", encoder, "wordpiece", 5);
    Json both = parse_json(read_file(golden("t5") / "config.json", 1 << 20), "t5");
    both["vocab_size"] = 124;  // what the tokenizer has: alignments need words
    make("translator", both, "unigram", 6);
  }
  void make(const std::string& name, const Json& config, const char* tokenizer, uint64_t seed) {
    ThreadPool pool(1);
    write_new_model(folder_.path() / name, config, {.seed = seed}, pool);
    std::filesystem::copy_file(golden("tokenizers") / tokenizer / "tokenizer.json",
                               folder_.path() / name / "tokenizer.json");
  }
  // The row of one token becomes NaN.
  static void spoil_embedding(const std::filesystem::path& file, int64_t token, int64_t width) {
    std::string bytes = read_file(file, size_t{64} << 20);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const Json tensors = parse_json(bytes.substr(8, header), "header");
    const auto begin = tensors.at("model.embed_tokens.weight").at("data_offsets")[0].get<size_t>();
    const size_t row = static_cast<size_t>(width) * sizeof(float);
    std::memset(bytes.data() + 8 + header + begin + static_cast<size_t>(token) * row, 0xff, row);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  TempFolder folder_;
};

struct HttpAnswer {
  int status = 0;                              // 0: the connection ended without an answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  double seconds = 0;

  Json json() const { return parse_json(body, "answer"); }
  std::string error(const char* field = "message") const {
    const Json all = json();
    const Json& value = all.at("error").at(field);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
};

// A connection to 127.0.0.1.
class Client {
 public:
  // With receive_bytes the kernel keeps about as many for a client that does not read, not megabytes.
  explicit Client(int port, int receive_bytes = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { leave(); }
  void leave() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool connected() const { return connected_; }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // More bytes; false at the end of the connection or after so long.
  bool more(double seconds = 20) {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, static_cast<int>(seconds * 1e3)) <= 0) return false;
    char bytes[4096];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    in_.append(bytes, static_cast<size_t>(got));
    return true;
  }
  bool read_until(std::string_view text, double seconds = 20) {
    while (in_.find(text) == in_.npos) {
      if (!more(seconds)) return false;
    }
    return true;
  }
  const std::string& received() const { return in_; }

  // body: false for the answer to a HEAD.
  HttpAnswer answer(double seconds = 20, bool body = true) {
    const auto start = std::chrono::steady_clock::now();
    HttpAnswer made;
    if (!read_until("\r\n\r\n", seconds)) return made;
    const size_t end = in_.find("\r\n\r\n");
    std::string head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    if (head.starts_with("HTTP/1.1 100")) return answer(seconds);
    made.status = std::stoi(head.substr(9, 3));
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t line = head.find("\r\n", at), colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      made.headers[name] = head.substr(colon + 2, line - colon - 2);
      at = line + 2;
    }
    if (!body) return made;
    if (made.headers["transfer-encoding"] == "chunked") {
      while (true) {
        if (!read_until("\r\n", seconds)) break;
        const size_t size = std::stoul(in_.substr(0, in_.find("\r\n")), nullptr, 16);
        in_.erase(0, in_.find("\r\n") + 2);
        while (in_.size() < size + 2 && more(seconds)) {
        }
        if (in_.size() < size + 2) break;
        made.body += in_.substr(0, size);
        in_.erase(0, size + 2);
        if (size == 0) break;
      }
    } else if (made.headers.contains("content-length")) {
      const size_t size = std::stoul(made.headers["content-length"]);
      while (in_.size() < size && more(seconds)) {
      }
      made.body = in_.substr(0, size);
      in_.erase(0, made.body.size());
    }
    made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return made;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
  std::string in_;
};

struct Ask {
  std::string method = "POST", path = {}, body = {}, key = {};
  std::string headers = {};  // whole lines
  std::string host = "127.0.0.1";
};

inline std::string request_text(const Ask& ask) {
  std::string text = ask.method + " " + ask.path + " HTTP/1.1\r\n";
  if (!ask.host.empty()) text += "Host: " + ask.host + "\r\n";
  if (!ask.key.empty()) text += "Authorization: Bearer " + ask.key + "\r\n";
  if (ask.method == "POST") text += "Content-Length: " + std::to_string(ask.body.size()) + "\r\n";
  return text + ask.headers + "\r\n" + ask.body;
}

class RunningServer {
 public:
  static ServerOptions usual(const std::vector<std::string>& models = {"chatty"}) {
    ServerOptions options;
    for (const std::string& name : models) options.models.push_back(TinyModels::get().path(name));
    options.open.threads = 1;
    options.room.slots = 4;
    options.log = false;
    return options;
  }
  explicit RunningServer(const ServerOptions& options = usual()) : server_(options) {
    thread_ = std::thread([this] {
      try {
        server_.run();
      } catch (const std::exception& failure) {
        ADD_FAILURE() << failure.what();
      }
    });
    while (!server_.ready()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ~RunningServer() {
    server_.stop();
    thread_.join();
  }
  void stop() { server_.stop(); }
  int port() const { return server_.port(); }
  Server& server() { return server_; }

  HttpAnswer ask(const Ask& ask) const {
    Client client(port());
    client.send(request_text(ask));
    return client.answer(20, ask.method != "HEAD");
  }
  HttpAnswer post(const std::string& path, const Json& body, const std::string& key = "") const {
    return ask({.path = path, .body = body.dump(), .key = key});
  }
  HttpAnswer get(const std::string& path, const std::string& key = "") const {
    return ask({.method = "GET", .path = path, .key = key});
  }
  // A number of /metrics; -1 if it is not there.
  double metric(const std::string& name, const std::string& key = "") const {
    const std::string text = "\n" + get("/metrics", key).body;
    const size_t at = text.find("\n" + name + " ");
    return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

 private:
  Server server_;
  std::thread thread_;
};

// Servers that several tests ask. They end before the program does: what they do in the background reads static tables.
class SharedServers : public testing::Environment {
 public:
  static const RunningServer* start(const ServerOptions& options) {
    return all().emplace_back(std::make_unique<RunningServer>(options)).get();
  }
  void TearDown() override { all().clear(); }

 private:
  static std::vector<std::unique_ptr<RunningServer>>& all() {
    static std::vector<std::unique_ptr<RunningServer>> servers;
    return servers;
  }
};
inline testing::Environment* const kSharedServers = testing::AddGlobalTestEnvironment(new SharedServers);

// What stands in double quotes in a source file.
inline std::vector<std::string> quoted_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = text.find('"'); at != text.npos; at = text.find('"', at + 1)) {
    const size_t end = text.find('"', at + 1);
    if (end == text.npos) break;
    names.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

// The JSON of every event of a stream; the last is [DONE].
inline std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    const std::string frame = body.substr(at, end - at);
    const size_t data = frame.find("data: ");
    if (data != frame.npos && frame.substr(data) != "data: [DONE]") {
      events.push_back(parse_json(frame.substr(data + 6), "event"));
    }
    at = end == body.npos ? body.size() : end + 2;
  }
  return events;
}

}  // namespace qkv::test

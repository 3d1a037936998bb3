// The same server over TLS, with a certificate made here.
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>

#include "base/expect_error.h"
#include "server/test_server.h"

namespace qkv {
namespace {

// A certificate of its own for localhost, and its key.
void write_certificate(const std::filesystem::path& certificate, const std::filesystem::path& key_file) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x509 = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), 0);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, key);
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(x509, name);
  X509_sign(x509, key, EVP_sha256());
  FILE* out = std::fopen(certificate.c_str(), "w");
  PEM_write_X509(out, x509);
  std::fclose(out);
  out = std::fopen(key_file.c_str(), "w");
  PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(out);
  X509_free(x509);
  EVP_PKEY_free(key);
}

int connected_socket(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  return fd;
}

TEST(ServerTls, AnswersAndStreamsOverTls) {
  const TempFolder folder;
  ServerOptions options = test::RunningServer::usual();
  options.http.tls_certificate = (folder.path() / "cert.pem").string();
  options.http.tls_key = (folder.path() / "key.pem").string();
  expect_error([&] { Server server(options); }, {"certificate", "cannot be used"});
  write_certificate(options.http.tls_certificate, options.http.tls_key);
  const test::RunningServer server(options);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  for (const std::string& text :
       {test::request_text({.method = "GET", .path = "/v1/models", .headers = "Connection: close\r\n"}),
        test::request_text({.path = "/v1/completions",
        .body = R"({"prompt": "x", "stream": true, "max_tokens": 40})",
        .headers = "Connection: close\r\nOrigin: https://127.0.0.1\r\n"})}) {
    const int fd = connected_socket(server.port());
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    ASSERT_EQ(SSL_connect(ssl), 1);
    EXPECT_GE(SSL_version(ssl), TLS1_2_VERSION);
    ASSERT_EQ(SSL_write(ssl, text.data(), static_cast<int>(text.size())), static_cast<int>(text.size()));
    std::string got;
    char bytes[4096];
    for (int n = 0; (n = SSL_read(ssl, bytes, sizeof bytes)) > 0;) got.append(bytes, static_cast<size_t>(n));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK")) << got;
    EXPECT_TRUE(got.find("chatty") != got.npos) << got;
    SSL_free(ssl);
    ::close(fd);
  }
  SSL_CTX_free(context);
  // Without TLS nothing is answered, and the server goes on.
  test::Client plain(server.port());
  plain.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(plain.answer(5).status, 0);
}

}  // namespace
}  // namespace qkv

#include "server/http/api_error.h"

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "infer/scheduler.h"

namespace qkv::server {
namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

ApiError internal_error(std::string_view what) {
  log_line(Log::error, what);
  return ApiError(500, "the server failed to answer this request; its log says more");
}

OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

}  // namespace

OrderedJson ApiError::json() const {
  OrderedJson error{{"message", escaped(message)},
                    {"type", type_of(status)},
                    {"param", text_or_null(param)},
                    {"code", text_or_null(code)}};
  for (const auto& [name, value] : more.items()) error[name] = value;
  return {{"error", std::move(error)}};
}

HttpResponse ApiError::response() const {
  HttpResponse made = json_response(json(), status);
  if (retry_after > 0) made.headers.emplace_back("Retry-After", std::to_string(retry_after));
  if (status == 401) made.headers.emplace_back("WWW-Authenticate", "Bearer");
  return made;
}

HttpResponse json_response(const OrderedJson& json, int status) {
  return {.status = status, .body = json_text(json, -1)};
}

ApiError api_error_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ApiError& error) {
    return error;
  } catch (const QueueFull& error) {
    ApiError full(429, error.message());
    full.retry_after = 1;
    return full;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) return internal_error(error.what());
    return ApiError(400, error.message() + "; " + error.hint());
  } catch (const std::bad_alloc&) {
    log_line(Log::error, "a request was refused: out of memory");
    ApiError full(503, "the server has no memory left for this request");
    full.retry_after = 5;
    return full;
  } catch (const std::exception& error) {
    return internal_error(error.what());
  } catch (...) {
    return internal_error("an unknown exception");
  }
}

ApiError server_fault_of(const std::exception_ptr& failure) {
  const ApiError error = api_error_of(failure);
  return error.status < 500 ? internal_error(error.message) : error;
}

}  // namespace qkv::server

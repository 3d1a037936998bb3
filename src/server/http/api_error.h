// What a client is told when its request cannot be answered, in OpenAI's form.
#pragma once

#include <exception>
#include <string>

#include "server/http/http.h"
#include "text/chat/ordered_json.h"

namespace qkv::server {

struct ApiError : std::exception {
  ApiError(int code_of_http, std::string what_happened) : status(code_of_http), message(std::move(what_happened)) {}
  ApiError(int code_of_http, std::string what_happened, std::string field)
      : status(code_of_http), message(std::move(what_happened)), param(std::move(field)) {}

  int status;
  std::string message;
  std::string param = {}, code = {};         // empty: null
  OrderedJson more = OrderedJson::object();  // other fields of "error"
  int retry_after = 0;                       // seconds; 0: not said
  const char* what() const noexcept override { return message.c_str(); }

  OrderedJson json() const;  // {"error": {...}}
  HttpResponse response() const;
};

// The same for what failed after the request was accepted: never the client's fault.
ApiError server_fault_of(const std::exception_ptr& failure);

HttpResponse json_response(const OrderedJson& json, int status = 200);

// An exception of any kind, as a client is told of it: bad input is 400, what is our fault 500 without details.
ApiError api_error_of(const std::exception_ptr& failure);

}  // namespace qkv::server

// The Error a call throws, for checks of its whole text.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace qkv {

template <class Call>
std::optional<Error> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The call must throw an Error of kind input with all these parts in its message, and a hint.
template <class Call>
void expect_error(const Call& call, std::initializer_list<std::string_view> parts) {
  const std::optional<Error> error = error_of(call);
  ASSERT_TRUE(error.has_value()) << "no Error was thrown";
  EXPECT_EQ(error->kind(), Error::Kind::input);
  EXPECT_FALSE(error->hint().empty()) << error->what();
  for (const std::string_view part : parts) {
    EXPECT_NE(error->message().find(part), std::string::npos) << "'" << part << "' is not in: " << error->message();
  }
}

}  // namespace qkv

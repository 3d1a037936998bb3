// The parts an Error's message must contain.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

#include "base/expect_error.h"

namespace qkv::test {

template <class Call>
void expect_says(const Call& call, std::initializer_list<std::string_view> parts,
                 Error::Kind kind = Error::Kind::input) {
  const std::optional<Error> error = error_of(call);
  ASSERT_TRUE(error.has_value()) << "no Error was thrown";
  EXPECT_EQ(error->kind(), kind) << error->what();
  for (const std::string_view part : parts) {
    EXPECT_NE(error->message().find(part), std::string::npos) << "'" << part << "' is not in: " << error->message();
  }
}

}  // namespace qkv::test

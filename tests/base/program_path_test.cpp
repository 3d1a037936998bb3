#include "base/program_path.h"

#include <gtest/gtest.h>

#include "base/temp_folder.h"

namespace qkv {
namespace {

TEST(ProgramPath, IsTheSameWithoutProc) {
  const TempFolder root;
  EXPECT_EQ(program_path().filename(), "test_base");
  EXPECT_EQ(program_path(root.path()), program_path());
}

}  // namespace
}  // namespace qkv

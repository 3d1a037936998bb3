# qkv_room(NAME LINK ...): every .cpp below src/NAME becomes the static library qkv_NAME.
function(qkv_room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(qkv_${name} STATIC ${sources})
  target_link_libraries(qkv_${name} PUBLIC ${ARG_LINK} PRIVATE qkv_flags)
  target_include_directories(qkv_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
endfunction()

# qkv_test(NAME LINK ...): every .cpp below tests/NAME becomes the test program test_NAME, each case one ctest entry.
function(qkv_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARG_LINK} qkv_flags GTest::gtest_main)
  target_precompile_headers(test_${name} PRIVATE <gtest/gtest.h> <functional> <map> <string> <vector>)
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# qkv_unity(TARGET FILES): FILES source files are compiled as one, which reads their headers and instantiates their
# templates once. Names in anonymous namespaces must differ within a room; QKV_UNITY=OFF compiles file by file.
function(qkv_unity target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${QKV_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# qkv_room(NAME [COLD] [UNITY n] [OWN_FLAGS] [WITHOUT regex] [FOLDER path] LINK ...): every .cpp below src/NAME, or below
# src/FOLDER, becomes the static library qkv_NAME, built where it is needed.
function(qkv_room name)
  cmake_parse_arguments(ARG "COLD;OWN_FLAGS" "WITHOUT;UNITY;FOLDER" "LINK" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER}/*.cpp)
  if(ARG_WITHOUT)
    list(FILTER sources EXCLUDE REGEX ${ARG_WITHOUT})
  endif()
  add_library(qkv_${name} STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(qkv_${name} PUBLIC ${ARG_LINK} PRIVATE qkv_flags)
  target_include_directories(qkv_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  if(ARG_UNITY)
    qkv_unity(qkv_${name} ${ARG_UNITY})
  endif()
  # Precompiled headers are made once for all rooms with the same flags: by base, and by cold_headers for the cold ones. For a
  # room with flags of its own they would take longer than they save.
  set(headers <algorithm> <atomic> <cmath> <filesystem> <functional> <map> <memory> <optional> <span> <sstream> <string>
    <thread> <vector>)
  if(name STREQUAL "base")
    target_precompile_headers(qkv_base PRIVATE ${headers} <base/json.h> <fmt/format.h>)
  elseif(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL "Release")
    if(NOT TARGET qkv_cold_headers)
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cold_headers.cpp CONTENT "")
      add_library(qkv_cold_headers STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/cold_headers.cpp)
      target_link_libraries(qkv_cold_headers PRIVATE qkv_base qkv_flags)
      target_compile_options(qkv_cold_headers PRIVATE -O1)
      target_precompile_headers(qkv_cold_headers PRIVATE ${headers} <base/json.h> <fmt/format.h>)
    endif()
    target_compile_options(qkv_${name} PRIVATE -O1)
    target_precompile_headers(qkv_${name} REUSE_FROM qkv_cold_headers)
  elseif(NOT ARG_OWN_FLAGS)
    target_precompile_headers(qkv_${name} REUSE_FROM qkv_base)
  endif()
endfunction()

# qkv_unsanitized(TARGET CHECKS): without these, except where everything is checked (./qkv test --asan --long).
function(qkv_unsanitized target checks)
  if(QKV_SANITIZE AND NOT QKV_SANITIZE_ALL)
    set_target_properties(${target} PROPERTIES UNSANITIZED -fno-sanitize=${checks})
  endif()
endfunction()

# qkv_plain(TARGET): the rooms are optimised and checked in full; tests and commands around them need not be, and build
# faster.
function(qkv_plain target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)  # which only watches optimised code
  elseif(QKV_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    qkv_unsanitized(${target} alignment,null,object-size,vptr)
  endif()
endfunction()

# qkv_test(NAME [UNITY files compiled as one] [UNSANITIZED tests] LINK ...): every .cpp below tests/NAME becomes the test program test_NAME, each case one ctest entry;
# suites named ...Long are for ./qkv test --long. A sanitized program takes long to start, so there a fourth of the cases
# is one entry. Under --asan the UNSANITIZED, which mostly compute, stay out; --asan --long and --tsan have them too.
# GTEST_FILTER picks single ones.
function(qkv_test name)
  cmake_parse_arguments(ARG "" "UNITY;UNSANITIZED" "LINK" ${ARGN})
  qkv_test_program(${name} UNITY ${ARG_UNITY} LINK ${ARG_LINK})
  if(QKV_SANITIZE)
    set(filter "")
    if(ARG_UNSANITIZED AND NOT QKV_SANITIZE_ALL AND NOT QKV_SANITIZE MATCHES "thread")
      set(filter "-${ARG_UNSANITIZED}")
    endif()
    qkv_test_entries(${name}.quarter test_${name} 4 FILTER "${filter}" PROPERTIES TIMEOUT 900)
  else()
    gtest_discover_tests(test_${name} TEST_PREFIX ${name}. TEST_FILTER -*Long.* DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST
      PROPERTIES TIMEOUT 300)
    gtest_discover_tests(test_${name} TEST_PREFIX ${name}. TEST_FILTER *Long.* TEST_LIST test_${name}_long
      DISCOVERY_TIMEOUT 60 DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 3000 LABELS long)
  endif()
endfunction()

# qkv_test_program(NAME [UNITY n] LINK ...): test_NAME alone, without entries.
function(qkv_test_program name)
  cmake_parse_arguments(ARG "" "UNITY" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  add_executable(test_${name} ${sources})
  if(NOT ARG_UNITY)
    set(ARG_UNITY 20)
  endif()
  qkv_unity(test_${name} ${ARG_UNITY})
  target_link_libraries(test_${name} PRIVATE ${ARG_LINK} qkv_flags GTest::gtest_main)
  target_precompile_headers(test_${name} REUSE_FROM qkv_test_headers)
  qkv_plain(test_${name})
endfunction()

# qkv_test_entries(NAME PROGRAM n [FILTER filter] [SET variable=value ...] PROPERTIES ...): the cases of a program as n entries.
function(qkv_test_entries name program count)
  cmake_parse_arguments(ARG "" "FILTER" "SET;PROPERTIES" ${ARGN})
  if(ARG_FILTER)
    list(APPEND ARG_SET "GTEST_FILTER=${ARG_FILTER}")
  endif()
  math(EXPR last "${count} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${name}_${part} COMMAND ${program})
    set_tests_properties(${name}_${part} PROPERTIES ${ARG_PROPERTIES}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${part};${ARG_SET}")
  endforeach()
endfunction()

# qkv_by_hand(NAME n [ALWAYS filter]): the cases of test_NAME once more on a GPU in software (tests/support/gpu_by_hand), as n
# entries of ./qkv test --by-hand; those that the filter lets through also as two entries of ./qkv test, in the order in which what
# is overwritten too early shows.
function(qkv_by_hand name count)
  cmake_parse_arguments(ARG "" "ALWAYS" "" ${ARGN})
  set(program test_${name}_by_hand)
  add_executable(${program} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:test_${name}>)
  target_link_libraries(${program} PRIVATE qkv_gpu_by_hand $<TARGET_PROPERTY:test_${name},LINK_LIBRARIES>)
  add_dependencies(by_hand_tests ${program})
  qkv_test_entries(by_hand.all_${name} ${program} ${count} FILTER "-*Long.*:NcclComm.*" SET QKV_TABLES=cuda  # NCCL needs a GPU
    PROPERTIES LABELS by_hand TIMEOUT 3000)
  if(ARG_ALWAYS AND NOT QKV_SANITIZE)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL NO)
    qkv_test_entries(by_hand.${name} ${program} 2 FILTER "${ARG_ALWAYS}" SET QKV_TABLES=cuda QKV_GPU_ORDER=backward
      PROPERTIES TIMEOUT 300 COST 30)
  endif()
endfunction()

# qkv_embed_texts(TARGET FOLDER HEADER FUNCTION NAMESPACE): every FOLDER/NAME.json becomes a part of the program, as name
# and text in what FUNCTION, which HEADER declares, returns.
function(qkv_embed_texts target folder header function namespace)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.json)
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND entries "      {\"${name}\", R\"text(${text})text\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${function}.cpp @ONLY CONTENT "#include \"@header@\"

namespace @namespace@ {

const std::vector<std::pair<std::string_view, std::string_view>>& @function@() {
  static const std::vector<std::pair<std::string_view, std::string_view>> all{
@entries@  };
  return all;
}

}  // namespace @namespace@
")
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/${function}.cpp)
endfunction()

# qkv_embed_page(TARGET FILE): the bytes of FILE become a part of the library (src/inspect/report/report_page.h).
function(qkv_embed_page target file)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/report_page.cpp @ONLY CONTENT "#include \"inspect/report/report_page.h\"

#include <cstddef>

asm(\".pushsection .rodata\\n\"
    \"qkv_page_begin: .incbin \\\"@file@\\\"\\n\"
    \"qkv_page_end:\\n\"
    \".popsection\\n\");
extern \"C\" const char qkv_page_begin, qkv_page_end;

namespace qkv {

std::string_view report_page() {
  return {&qkv_page_begin, static_cast<size_t>(&qkv_page_end - &qkv_page_begin)};
}

}  // namespace qkv
")
  set_source_files_properties(${PROJECT_BINARY_DIR}/report_page.cpp PROPERTIES OBJECT_DEPENDS ${file} SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/report_page.cpp)
endfunction()

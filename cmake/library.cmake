# libqkv.so: the rooms the program is made of, linked a second time. Only what include/qkv marks with QKV_API is seen.
add_library(qkv_shared SHARED EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/cold_headers.cpp)
set_target_properties(qkv_shared PROPERTIES OUTPUT_NAME qkv VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/library.map)
target_link_libraries(qkv_shared PRIVATE -Wl,--whole-archive qkv_api -Wl,--no-whole-archive qkv_server qkv_flags)
target_link_options(qkv_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/library.map -Wl,--no-undefined)
target_include_directories(qkv_shared INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(qkv_shared INTERFACE cxx_std_20)

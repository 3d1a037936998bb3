# libqkv.so: the rooms the program is made of, linked a second time. Only what include/qkv marks with QKV_API is seen.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(QKV_SANITIZE)
  return()
endif()

add_library(qkv_shared SHARED EXCLUDE_FROM_ALL src/api/c.cpp)
set_target_properties(qkv_shared PROPERTIES OUTPUT_NAME qkv EXPORT_NAME qkv VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/library.map)
target_link_libraries(qkv_shared PRIVATE -Wl,--whole-archive $<BUILD_INTERFACE:qkv_api> -Wl,--no-whole-archive
  $<BUILD_INTERFACE:qkv_flags>)
target_compile_options(qkv_shared PRIVATE -O1)
target_link_options(qkv_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/library.map -Wl,--no-undefined)
target_include_directories(qkv_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(qkv::qkv ALIAS qkv_shared)  # for a project that has qkv as a folder of its own
target_compile_features(qkv_shared INTERFACE cxx_std_20)

configure_package_config_file(cmake/qkvConfig.cmake.in qkvConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/qkv.pc.in qkv.pc @ONLY)
add_subdirectory(cmake/install_library)

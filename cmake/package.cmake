# The Debian package (./qkv package), and what is in it besides program and library: the manual page and completions,
# which the program prints itself.
if(NOT TARGET qkv_app)
  return()
endif()
set(extras ${PROJECT_BINARY_DIR}/extras)
file(MAKE_DIRECTORY ${extras})
find_program(QKV_GZIP gzip REQUIRED)
add_custom_command(OUTPUT ${extras}/qkv.1.gz ${extras}/qkv.bash ${extras}/_qkv DEPENDS qkv_app VERBATIM COMMENT "manual page and completions"
  COMMAND sh -c "$<TARGET_FILE:qkv_app> help --man >${extras}/qkv.1 && ${QKV_GZIP} -9nf ${extras}/qkv.1"
  COMMAND sh -c "$<TARGET_FILE:qkv_app> completion bash >${extras}/qkv.bash && $<TARGET_FILE:qkv_app> completion zsh >${extras}/_qkv")
add_custom_target(package_files DEPENDS qkv_app qkv_shared ${extras}/qkv.1.gz)
install(FILES ${extras}/qkv.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program OPTIONAL)
install(FILES ${extras}/qkv.bash DESTINATION share/bash-completion/completions RENAME qkv COMPONENT program OPTIONAL)
install(FILES ${extras}/_qkv DESTINATION share/zsh/vendor-completions COMPONENT program OPTIONAL)
install(FILES LICENSE DESTINATION share/doc/qkv RENAME copyright COMPONENT program)

# Without the MPI module: the package would ask for MPI everywhere.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};qkv;program;/;${PROJECT_BINARY_DIR};qkv;library;/")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME qkv)
set(CPACK_PACKAGE_VENDOR "the authors of qkv")
set(CPACK_PACKAGE_CONTACT "the authors of qkv <qkv@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Train, run and look inside Transformers")
set(CPACK_PACKAGE_DESCRIPTION "A program and a library that train, run and look inside Transformers:\n\
 Hugging Face folders and GGUF files, attention maps, heads that are cut, a server with OpenAI's API.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
find_program(QKV_SHLIBDEPS dpkg-shlibdeps)
if(QKV_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libssl3")
endif()
include(CPack)

# cmake -DSOURCE=DIR -DHEADER=FILE -P commit.cmake: a header with the commit of DIR, and FILE.d, which names what changes
# when HEAD moves. "unknown" outside of a git checkout.
find_program(git git)
set(commit "")
set(log "")
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --git-path logs/HEAD
    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit unknown)
endif()
file(WRITE ${HEADER} "#pragma once\n#define QKV_COMMIT \"${commit}\"\n")
if(log)
  get_filename_component(log ${log} ABSOLUTE BASE_DIR ${SOURCE})
endif()
if(NOT EXISTS "${log}")
  set(log ${CMAKE_CURRENT_LIST_FILE})  # without any name ninja would take the list for missing, and always build
endif()
file(WRITE ${HEADER}.d "${HEADER}: ${log}\n")

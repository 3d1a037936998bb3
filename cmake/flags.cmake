# One interface target carries every flag of our own code; see docs/architecture.md, "Errors, flags, build".
option(QKV_WERROR "warnings are errors, as .ci/run has them; off for everybody else, whose compiler may know new ones" OFF)
add_library(qkv_flags INTERFACE)
target_include_directories(qkv_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# A project that has qkv as a folder of its own cannot act on our warnings and does not see them.
set(warnings "")
if(PROJECT_IS_TOP_LEVEL OR QKV_WERROR)
  set(warnings -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wno-missing-field-initializers)           # structs with designated initialisers: what is not named keeps its default
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees overlaps and overruns inside std::string that are not there (GCC bug 105651 and kin), depending on what
    # was inlined; the sanitizers look for the real ones.
    list(APPEND warnings -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds
      -Wno-alloc-size-larger-than)
  endif()
endif()
if(QKV_WERROR)
  list(APPEND warnings -Werror)
endif()

target_compile_options(qkv_flags INTERFACE ${warnings}
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=   # error texts name src/..., not the builder's folders
  -ffp-contract=off                          # a*b+c rounds the same way in every build; kernels say fma where they mean it
  -fstack-protector-strong
  # Compiled once, linked twice: into the program and into libqkv.so, which shows what QKV_API marks.
  -fPIC -fvisibility=hidden -fvisibility-inlines-hidden)
target_compile_definitions(qkv_flags INTERFACE _GLIBCXX_ASSERTIONS QKV_INTERNAL)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(qkv_flags INTERFACE --param=ggc-min-heapsize=1000000)  # KB: a file's compiler never collects garbage
endif()

if(QKV_SANITIZE)
  # A target's UNSANITIZED takes checks out again that would double its build and that other code has.
  target_compile_options(qkv_flags INTERFACE -fsanitize=${QKV_SANITIZE} $<TARGET_PROPERTY:UNSANITIZED>
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(qkv_flags INTERFACE -fsanitize=${QKV_SANITIZE})
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(qkv_flags INTERFACE _FORTIFY_SOURCE=3)
endif()

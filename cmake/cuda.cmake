# Kernels for NVIDIA GPUs (src/kernels/cuda), where nvcc is found. A GPU is needed to run them, not to build them.
# The launcher says OFF where it sees no GPU: the program is built sooner.
set(QKV_CUDA AUTO CACHE STRING "kernels for NVIDIA GPUs: AUTO where nvcc is found, ON to insist, OFF")
set(nvcc_flags -std=c++20 -O2 --extended-lambda --expt-relaxed-constexpr --fmad=false -diag-suppress=20012
  -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-ffp-contract=off,-fPIC,-fvisibility=hidden,-D_GLIBCXX_ASSERTIONS -DQKV_INTERNAL)
# Hopper's own instructions; the rest also as PTX for GPUs of capability 8.0 and later, which nobody has tested.
set(hopper_flags -gencode=arch=compute_90a,code=sm_90a)
set(general_flags ${hopper_flags} -gencode=arch=compute_80,code=compute_80)
# Files are compiled together: reading the headers takes nvcc 3 s of a processor, 4 where there is PTX too, more than many a
# kernel. Names differ within a group.
set(hopper_groups
  "attention_backward_short attention_dk_dv attention_dq attention_short attention_wgmma limits product_skinny"
  "product_wgmma")
set(cuda_groups  # those that take longest come first, so that no processor is left alone with one
  "block_few block_many block_product"
  "experts linear loss pool product product_f32 weight_gradients"
  "muon norm_backward"
  ${hopper_groups}
  "blocks lookup norm"
  "attention attention_backward_general attention_sums cache_heads choice elementwise"
  "attention_backward attention_decode attention_drop attention_fast attention_single_keys attention_tiles optim sort tensor_sets whole")

# qkv_cuda_files(OUT FOLDER ENDING): the groups, written into FOLDER as NAME.ENDING, and the files of none.
function(qkv_cuda_files out folder ending)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)
  foreach(group ${cuda_groups})
    string(REPLACE " " ";" members ${group})
    string(REPLACE " " "_" name ${group})
    set(included "")
    foreach(member ${members})
      set(file ${kernels})
      list(FILTER file INCLUDE REGEX "/${member}[.]cu$")
      string(APPEND included "#include \"${file}\"\n")
      list(REMOVE_ITEM kernels ${file})
    endforeach()
    file(CONFIGURE OUTPUT ${folder}/${name}.${ending} CONTENT "${included}")
    list(APPEND kernels ${folder}/${name}.${ending})
    if(group IN_LIST hopper_groups)
      list(APPEND hopper_only ${folder}/${name}.${ending})
    endif()
  endforeach()
  set(${out} ${kernels} PARENT_SCOPE)
  set(hopper_only ${hopper_only} PARENT_SCOPE)
endfunction()

# qkv_cuda_kernels(): src/kernels/cuda becomes a part of qkv_kernels. nvcc is called by hand: CMake of this age does not
# know how it says C++20.
function(qkv_cuda_kernels)
  if(QKV_CUDA STREQUAL "OFF" OR (QKV_SANITIZE AND NOT QKV_CUDA STREQUAL "ON"))
    return()
  endif()
  find_program(QKV_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT QKV_NVCC)
    if(QKV_CUDA STREQUAL "ON")
      message(FATAL_ERROR "QKV_CUDA=ON but nvcc was not found; install the CUDA toolkit or put nvcc on PATH")
    endif()
    return()
  endif()
  find_package(CUDAToolkit REQUIRED)
  file(GLOB_RECURSE host CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cpp)
  qkv_cuda_files(kernels ${PROJECT_BINARY_DIR}/cuda cu)
  foreach(file ${kernels})
    get_filename_component(name ${file} NAME)
    set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
    set(gpus ${general_flags})
    if(file IN_LIST hopper_only)
      set(gpus ${hopper_flags})
    endif()
    add_custom_command(OUTPUT ${object} DEPENDS ${file} DEPFILE ${object}.d COMMENT "nvcc ${name}" VERBATIM
      COMMAND ${QKV_NVCC} ${nvcc_flags} ${gpus} -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${object}.d
        -c ${file} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
  get_target_property(sources qkv_kernels SOURCES)
  list(FILTER sources EXCLUDE REGEX "/no_gpu[.]cpp$")
  set_target_properties(qkv_kernels PROPERTIES SOURCES "${sources}")
  target_sources(qkv_kernels PRIVATE ${objects} ${host})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set_source_files_properties(${host} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_compile_definitions(qkv_kernels PUBLIC QKV_WITH_CUDA)
  set(QKV_WITH_CUDA YES PARENT_SCOPE)
  target_link_libraries(qkv_kernels PUBLIC CUDA::cudart_static)
endfunction()

# CUDA sources are compiled by nvcc as custom commands: enabling the language would make every configure run
# its tests. Machine code for sm_90a and its PTX, which the emulated runtime executes.
get_filename_component(cuda_home ${PTXBENCH_CUDA_INCLUDE} DIRECTORY)
find_program(PTXBENCH_CUDA_COMPILER nvcc
  HINTS ${cuda_home}/bin ${cuda_home}/../../bin ${CMAKE_SOURCE_DIR}/.venv/cuda/bin /usr/local/cuda/bin)
if(NOT PTXBENCH_CUDA_COMPILER)
  message(FATAL_ERROR "nvcc not found: run scripts/setup.sh or install the toolkit")
endif()

# ptxbench_cuda_sources(TARGET FILE...): objects of these .cu files become part of TARGET.
function(ptxbench_cuda_sources target)
  foreach(source ${ARGN})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(REPLACE "/" "_" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${PTXBENCH_CUDA_COMPILER} -std=c++20 -O3
              -gencode=arch=compute_90a,code=[compute_90a,sm_90a]
              -I ${CMAKE_SOURCE_DIR}/src -Xcompiler=-fPIC -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name}" VERBATIM)
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  endforeach()
endfunction()

# ptxbench_ptx_text(TARGET FILE NAME): the PTX of a .cu file as `inline constexpr char NAME[]` in the header
# FILE_ptx.h of the build folder, found as #include "<folder below src>/FILE_ptx.h". For any GPU from sm_90 on.
function(ptxbench_ptx_text target file name)
  cmake_path(ABSOLUTE_PATH file)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src OUTPUT_VARIABLE inside)
  cmake_path(REMOVE_EXTENSION inside)
  set(header ${CMAKE_BINARY_DIR}/generated/${inside}_ptx.h)
  set(ptx ${CMAKE_BINARY_DIR}/generated/${inside}.ptx)
  cmake_path(GET header PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${header}
    COMMAND ${PTXBENCH_CUDA_COMPILER} -std=c++20 -O3 -arch=compute_90 -ptx ${file} -o ${ptx}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${ptx} -DOUTPUT=${header} -DNAME=${name}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake COMMENT "Building PTX ${inside}" VERBATIM)
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()

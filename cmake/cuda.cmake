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

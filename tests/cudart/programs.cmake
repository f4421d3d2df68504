# Host programs that the recording tests call, one entry point a case; linked like a candidate's host library.
add_library(cudart_test_programs MODULE
  ${CMAKE_CURRENT_LIST_DIR}/programs/good.cc ${CMAKE_CURRENT_LIST_DIR}/programs/bad.cc)
target_include_directories(cudart_test_programs SYSTEM PRIVATE ${PTXBENCH_CUDA_INCLUDE})
target_link_libraries(cudart_test_programs PRIVATE ptxbench_libcudart ptxbench_libcuda)
target_link_options(cudart_test_programs PRIVATE -Wl,--unresolved-symbols=ignore-all)
set_target_properties(cudart_test_programs PROPERTIES PREFIX "" SKIP_BUILD_RPATH ON
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/cudart)
add_library(cudart_test_static MODULE ${CMAKE_CURRENT_LIST_DIR}/programs/static_runtime.cc)
set_target_properties(cudart_test_static PROPERTIES PREFIX ""
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/cudart)
if(TARGET test_cudart)
  add_dependencies(test_cudart cudart_test_programs cudart_test_static ptxbench_host ptxbench)
endif()

# The CUDA back end: its list of sources, for the module (src/device/cuda) and for the emulated one (tests/cuda_host), and
# the search for a toolkit. The module is built with nvcc alone; CMake's own CUDA language is not used, since what it tries
# at configure time depends on versions of both.
set(RRL_CUDA AUTO CACHE STRING "CUDA module: AUTO = built where nvcc 12 or later is found, ON = an error where it is not, OFF")
set_property(CACHE RRL_CUDA PROPERTY STRINGS AUTO ON OFF)

# kernels and what stands around them; each file once
set(RRL_CUDA_SOURCES rows.cu optimizer.cu gemm.cu products.cu attention.cu attention_backward.cu lora.cu vocab.cu
                     sampling.cu graph.cu cuda_device.cu cuda_ops.cu collective_nccl.cu)
# the thin files that call NVIDIA's libraries, which the emulation replaces
set(RRL_CUDA_CALLS blaslt.cu graph_calls.cu nccl_calls.cu)
set(RRL_CUDA_LIBRARIES -ldl) # libnccl.so.2 is opened when it is needed (nccl_calls.cu)
list(TRANSFORM RRL_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/device/cuda/)
list(TRANSFORM RRL_CUDA_CALLS PREPEND ${PROJECT_SOURCE_DIR}/src/device/cuda/)

# RRL_NVCC, or RRL_CUDA_WHY: the reason why there is no module
set(RRL_CUDA_WHY)
if(RRL_CUDA STREQUAL OFF)
  set(RRL_CUDA_WHY "RRL_CUDA is OFF")
elseif(RRL_SANITIZE)
  set(RRL_CUDA_WHY "not under the sanitizers")
else()
  find_program(RRL_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin)
  if(NOT RRL_NVCC)
    set(RRL_CUDA_WHY "nvcc was not found")
  else()
    execute_process(COMMAND ${RRL_NVCC} --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" nvcc_version "${nvcc_says}")
    if(NOT CMAKE_MATCH_1 OR CMAKE_MATCH_1 LESS 12)
      set(RRL_CUDA_WHY "${RRL_NVCC} is of version \"${nvcc_version}\", 12 or later is needed")
    endif()
  endif()
endif()
if(RRL_CUDA_WHY AND RRL_CUDA STREQUAL ON)
  message(FATAL_ERROR "RRL_CUDA is ON (preset cuda) and the CUDA module cannot be built: ${RRL_CUDA_WHY}")
elseif(RRL_CUDA_WHY)
  message(STATUS "CUDA module: not built, ${RRL_CUDA_WHY}; tests on the emulated GPU run all the same")
else()
  message(STATUS "CUDA module: built with ${RRL_NVCC} for sm_80 and sm_90")
endif()

# Finds what is needed to build for GPUs. Sets cuda_missing (empty if everything is there),
# CMAKE_CUDA_ARCHITECTURES, cuda_warnings, NCCL_INCLUDE_DIR, NCCL_LIBRARY, CUPTI_INCLUDE_DIR (if not found,
# GPU kernels cannot be recorded) and CUDNN_INCLUDE_DIR (if not found, convolutions are replayed as matrix
# products).
set(REHEARSE_CUDA_ARCHITECTURES auto CACHE STRING
    "GPUs to compile for: auto (this machine's, or a few), all (from 7.0 on), or a list such as 80;90")
set(cuda_missing)
set(cuda_warnings --Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
if(NOT REHEARSE_WERROR)
  list(REMOVE_ITEM cuda_warnings --Werror=all-warnings)
endif()

if(NOT CMAKE_CUDA_COMPILER)
  find_program(REHEARSE_NVCC NAMES $ENV{CUDACXX} nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin)
  mark_as_advanced(REHEARSE_NVCC)
  if(NOT REHEARSE_NVCC)
    set(cuda_missing "nvcc of the CUDA Toolkit not found")
    return()
  endif()
  set(CMAKE_CUDA_COMPILER ${REHEARSE_NVCC})
endif()
if(NOT CUDAToolkit_ROOT)
  get_filename_component(CUDAToolkit_ROOT ${CMAKE_CUDA_COMPILER} DIRECTORY)
  get_filename_component(CUDAToolkit_ROOT ${CUDAToolkit_ROOT} DIRECTORY)
endif()
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cudart OR NOT TARGET CUDA::cublas)
  set(cuda_missing "the CUDA Toolkit's cudart or cuBLAS not found")
  return()
endif()

# Finds NCCL as Debian, NVIDIA's packages or Python's nvidia-nccl install it; the last has no libnccl.so.
find_package(Python3 QUIET COMPONENTS Interpreter)
set(nccl_of_python)
if(Python3_FOUND AND NOT NCCL_LIBRARY)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"
                  OUTPUT_VARIABLE nccl_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(nccl_places ${NCCL_ROOT} $ENV{NCCL_ROOT} $ENV{NCCL_HOME})
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_places} PATHS ${CUDAToolkit_INCLUDE_DIRS} ${nccl_of_python}
          PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${nccl_places}
             PATHS ${CUDAToolkit_LIBRARY_DIR} ${nccl_of_python} PATH_SUFFIXES lib lib64)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  set(cuda_missing "NCCL not found: set NCCL_ROOT")
  return()
endif()

# Some installations have CUPTI's headers in a separate folder. Its library is loaded at run time.
find_path(CUPTI_INCLUDE_DIR cupti_activity.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          PATHS ${CUDAToolkit_ROOT}/extras/CUPTI/include ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)

# Finds cuDNN's headers beside those of the CUDA Toolkit or where Python's nvidia-cudnn installs them. Its
# library is loaded at run time.
set(cudnn_of_python)
if(Python3_FOUND AND NOT CUDNN_INCLUDE_DIR)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])"
                  OUTPUT_VARIABLE cudnn_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDNN_ROOT} $ENV{CUDNN_ROOT}
          PATHS ${CUDAToolkit_INCLUDE_DIRS} ${cudnn_of_python} PATH_SUFFIXES include)

# Compiles native code for these architectures; drivers compile the PTX of the last one for newer GPUs.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE offered ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" offered "${offered}")
  list(FILTER offered EXCLUDE REGEX "^[1-6][0-9]$")
  list(SORT offered COMPARE NATURAL)
  set(chosen)
  if(REHEARSE_CUDA_ARCHITECTURES STREQUAL "all")
    set(chosen ${offered})
  elseif(REHEARSE_CUDA_ARCHITECTURES STREQUAL "auto")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE here
                    RESULT_VARIABLE no_gpu ERROR_QUIET)
    if(no_gpu EQUAL 0)
      string(REGEX MATCHALL "[0-9]+[.][0-9]+" here "${here}")
      string(REPLACE "." "" chosen "${here}")
      list(REMOVE_DUPLICATES chosen)
    else()
      set(chosen 80 90)  # A100, H100 and H200
    endif()
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${REHEARSE_CUDA_ARCHITECTURES})
  endif()
  foreach(architecture ${chosen})
    list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
  endforeach()
  if(chosen)
    list(GET chosen -1 newest)
    list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest}-virtual)
  endif()
endif()

# Makes Debian packages, one for each component that was built: `cpack --preset release`, or the target `package`.
set(REHEARSE_MAINTAINER "Rehearse developers <developers@rehearse.invalid>" CACHE STRING
    "Maintainer of the Debian packages: NAME <ADDRESS>")
mark_as_advanced(REHEARSE_MAINTAINER)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rehearse)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${REHEARSE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator of distributed training")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL)

# NAME names the package. DEPENDS lists dependencies besides the shared libraries, which dpkg-shlibdeps finds.
function(rehearse_package component name)
  cmake_parse_arguments(arg "" "SECTION;DEPENDS;RECOMMENDS;SUMMARY;DESCRIPTION" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${arg_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${arg_RECOMMENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${arg_SUMMARY}\n${arg_DESCRIPTION}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(same_version "rehearse (= ${PROJECT_VERSION})")
rehearse_package(program rehearse SECTION science SUMMARY "simulator of distributed training"
  DESCRIPTION "Predicts how long a training step takes on a cluster, says why, and finds faster plans: parallelism, network, \
memory and cost, from a scenario file. With presets of models, clusters and devices.")
if(TARGET rehearse-run)
  if(TARGET rehearse_cuda)
    # CUDA and NCCL have different package names on different machines, or none.
    message(STATUS "rehearse-run gets no Debian package: it is built with CUDA (REHEARSE_CUDA=OFF builds one without)")
  else()
    rehearse_package(run rehearse-run SECTION science DEPENDS "${same_version}" RECOMMENDS "openmpi-bin, iproute2"
      SUMMARY "distributed training schedules on real machines"
      DESCRIPTION "Carries out the schedules that rehearse predicts, by processes under MPI or across an emulated \
network, measures them, and calibrates profiles of this machine.")
  endif()
endif()
if(TARGET rehearse-gui)
  rehearse_package(window rehearse-gui SECTION science DEPENDS "${same_version}" RECOMMENDS fonts-dejavu-core
    SUMMARY "timelines of distributed training"
    DESCRIPTION "The window of rehearse: timelines of predicted and recorded training steps, breakdowns, \
comparisons, sweeps and plans. Also opens traces of PyTorch's profiler.")
endif()
if(TARGET rehearse_simulator)
  set(needed "${same_version}, libsimgrid-dev, libfmt-dev, libtomlplusplus-dev, libcli11-dev, nlohmann-json3-dev")
  if(ZLIB_FOUND)
    string(APPEND needed ", zlib1g-dev")
  endif()
  if(YAML_CPP_LIBRARY)
    string(APPEND needed ", libyaml-cpp-dev")
  endif()
  rehearse_package(development librehearse-dev SECTION libdevel DEPENDS "${needed}"
    SUMMARY "simulator of distributed training - development files"
    DESCRIPTION "Headers, static libraries and CMake's configuration, for find_package(Rehearse), of the library \
behind rehearse.")
endif()

# CPack needs these to find the packages of shared libraries.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
find_program(REHEARSE_SHLIBDEPS dpkg-shlibdeps)
find_program(REHEARSE_FILE file)
mark_as_advanced(REHEARSE_SHLIBDEPS REHEARSE_FILE)
if(NOT REHEARSE_SHLIBDEPS OR NOT REHEARSE_FILE)
  message(STATUS "Debian packages cannot be made: dpkg-shlibdeps or file not found (dpkg-dev file)")
endif()
include(CPack)

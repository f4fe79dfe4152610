# Defines what `cmake --install` installs, except the window and rehearse-run, which their folders install. The
# components are those of the packages (package.cmake): program, run, window, development.
include(CMakePackageConfigHelpers)

install(TARGETS rehearse COMPONENT program)
install(FILES LICENSE DESTINATION share/doc/rehearse COMPONENT program)
foreach(folder models/presets topologies/presets simulator/scenarios simulator/strategies/presets
        simulator/frameworks/presets simulator/input/presets benchmarks/measurements)
  get_filename_component(parent ${folder} DIRECTORY)
  install(DIRECTORY ${folder} DESTINATION share/rehearse/${parent} COMPONENT program)
endforeach()

# Installs the manual page and the completions of a program, which the program prints from the table of its --help.
function(rehearse_install_manual program component)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(manual ${PROJECT_BINARY_DIR}/share/man/man1/${program}.1)
  set(bash ${PROJECT_BINARY_DIR}/share/bash-completion/completions/${program})
  set(zsh ${PROJECT_BINARY_DIR}/share/zsh/site-functions/_${program})
  set(fish ${PROJECT_BINARY_DIR}/share/fish/vendor_completions.d/${program}.fish)
  foreach(file ${manual} ${bash} ${zsh} ${fish})
    get_filename_component(folder ${file} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${folder})
    install(FILES ${file} DESTINATION ${folder} COMPONENT ${component})
  endforeach()
  # Debian's zsh reads site-functions only below /usr/local; below /usr it reads this folder.
  install(FILES ${zsh} DESTINATION share/zsh/vendor-completions COMPONENT ${component})
  # The completions contain the names of presets.
  file(GLOB presets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/presets/*.toml
       ${PROJECT_SOURCE_DIR}/topologies/presets/*.toml ${PROJECT_SOURCE_DIR}/topologies/presets/devices/*.toml
       ${PROJECT_SOURCE_DIR}/simulator/*/presets/*.toml ${PROJECT_SOURCE_DIR}/simulator/input/presets/*/*.toml
       ${PROJECT_SOURCE_DIR}/benchmarks/measurements/*.csv)
  set(script ${PROJECT_SOURCE_DIR}/simulator/install/manual.cmake)
  add_custom_command(
    OUTPUT ${manual} ${bash} ${zsh} ${fish}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DMANUAL=${manual} -DBASH=${bash} -DZSH=${zsh}
            -DFISH=${fish} -P ${script}
    DEPENDS ${program} ${script} ${presets}
    COMMENT "Writing the manual page and the completions of ${program}" VERBATIM)
  add_custom_target(${program}-manual ALL DEPENDS ${manual} ${bash} ${zsh} ${fish})
endfunction()
rehearse_install_manual(rehearse program)

# Installs the library for find_package(Rehearse): the archives of models, topologies and simulator, which need one
# another, as one target Rehearse::simulator. Headers keep the paths by which they include each other.
if(REHEARSE_HEADERS)
  message(STATUS "The library is not installed: its users would need the packages that REHEARSE_HEADERS replaces")
  return()
endif()
set(library_targets)
get_property(folders GLOBAL PROPERTY rehearse_folders)
foreach(folder ${folders})
  rehearse_target_of(${folder} name)
  list(APPEND library_targets ${name})
  string(REGEX REPLACE "^rehearse_" "" export_name ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${export_name})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.hpp ${PROJECT_SOURCE_DIR}/${folder}/*.inc)
  install(FILES ${headers} DESTINATION include/rehearse/${folder} COMPONENT development)
endforeach()
install(FILES simulator/install/rehearse.hpp DESTINATION include/rehearse COMPONENT development)
add_library(rehearse_simulator INTERFACE)
set_target_properties(rehearse_simulator PROPERTIES EXPORT_NAME simulator)
target_compile_features(rehearse_simulator INTERFACE cxx_std_20)
target_include_directories(rehearse_simulator INTERFACE $<INSTALL_INTERFACE:include/rehearse>)
target_link_libraries(rehearse_simulator INTERFACE ${library_targets})
set(config lib/cmake/Rehearse)
install(TARGETS rehearse_simulator ${library_targets} EXPORT RehearseTargets
        ARCHIVE DESTINATION lib/rehearse COMPONENT development)
install(EXPORT RehearseTargets NAMESPACE Rehearse:: DESTINATION ${config} COMPONENT development)
configure_package_config_file(simulator/install/RehearseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/RehearseConfig.cmake INSTALL_DESTINATION ${config} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RehearseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RehearseConfig.cmake ${PROJECT_BINARY_DIR}/RehearseConfigVersion.cmake
        DESTINATION ${config} COMPONENT development)
install(DIRECTORY simulator/example DESTINATION share/doc/rehearse COMPONENT development)

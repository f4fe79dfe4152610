# Installs what was built, moves the installation, and uses it from its new place:
#   cmake -DBUILD=build -DWORK=FOLDER -DPROGRAMS="rehearse;rehearse-gui" -DCOMPILER=c++ -DFLAGS=...
#         -DGENERATOR=Ninja -P install.cmake
# Checks that the programs find their data, that a program links the library, and that no tests are installed.
cmake_minimum_required(VERSION 3.25)
unset(ENV{REHEARSE_DATA})
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/empty)
function(run out) # command
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK}/empty RESULT_VARIABLE status OUTPUT_VARIABLE text
                  ERROR_VARIABLE told)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " line)
    message(FATAL_ERROR "${line}: status ${status}\n${text}${told}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()
function(expect what text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${what}: found \"${text}\"; expected: what matches ${pattern}")
  endif()
endfunction()

run(told ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/moved)
set(moved ${WORK}/moved)
file(GLOB installed RELATIVE ${moved}/bin ${moved}/bin/*)
list(SORT installed)
list(SORT PROGRAMS)
if(NOT installed STREQUAL PROGRAMS)
  message(FATAL_ERROR "${moved}/bin has ${installed}; expected: ${PROGRAMS}")
endif()
set(files share/doc/rehearse/LICENSE include/rehearse/rehearse.hpp include/rehearse/simulator/schedule/schedule.hpp
    share/rehearse/models/presets/gpt3-175b.toml share/rehearse/simulator/scenarios/resnet50-ring.toml
    share/rehearse/topologies/presets/devices/a100-80.toml share/rehearse/benchmarks/measurements)
foreach(program ${PROGRAMS})
  list(APPEND files share/man/man1/${program}.1 share/bash-completion/completions/${program}
       share/zsh/site-functions/_${program} share/fish/vendor_completions.d/${program}.fish)
endforeach()
if(EXISTS ${BUILD}/lib/rehearse/rehearse-gpu.so)
  list(APPEND files lib/rehearse/rehearse-gpu.so)
endif()
if(rehearse-gui IN_LIST PROGRAMS)
  list(APPEND files share/applications/rehearse-gui.desktop share/icons/hicolor/scalable/apps/rehearse-gui.svg
       share/rehearse/examples/scaling.csv)
endif()
foreach(program ${PROGRAMS})
  run(version ${moved}/bin/${program} --version)
  expect(${program} "${version}" "^${program} [0-9.]+\n$")
endforeach()
foreach(file ${files})
  if(NOT EXISTS ${moved}/${file})
    message(FATAL_ERROR "${moved}/${file} is missing")
  endif()
endforeach()

# This preset is in no other place, so the program must have found the moved ones.
set(presets ${moved}/share/rehearse/topologies/presets)
file(COPY_FILE ${presets}/ethernet.toml ${presets}/moved.toml)
set(scenario ${moved}/share/rehearse/simulator/scenarios/resnet50-ring.toml)
run(result ${moved}/bin/rehearse simulate ${scenario} --set cluster.preset=moved --format json)
string(JSON step_s GET "${result}" step_time_s)
string(JSON devices GET "${result}" devices)

# desktop-file-validate prints nothing if the file is valid.
find_program(VALIDATE desktop-file-validate)
if(rehearse-gui IN_LIST PROGRAMS)
  if(VALIDATE)
    run(told ${VALIDATE} ${moved}/share/applications/rehearse-gui.desktop)
  endif()
  run(told ${CMAKE_COMMAND} -E env QT_QPA_PLATFORM=offscreen ${moved}/bin/rehearse-gui
      ${moved}/share/rehearse/examples/resnet50-ring.json.gz --screenshot ${WORK}/window.png)
  file(READ ${WORK}/window.png png LIMIT 8 HEX)
  expect(${WORK}/window.png "${png}" "^89504e470d0a1a0a$")
endif()

# Builds and runs the example; the library must find the data of its installation.
if(COMPILER)
  run(told ${CMAKE_COMMAND} -G "${GENERATOR}" -S ${moved}/share/doc/rehearse/example -B ${WORK}/example
      -DCMAKE_PREFIX_PATH=${moved}
      -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_FLAGS=${FLAGS}")
  run(told ${CMAKE_COMMAND} --build ${WORK}/example)
  run(result ${WORK}/example/step_time ${scenario} cluster.preset=moved)
  string(SUBSTRING "${step_s}" 0 6 digits)
  string(REPLACE . "[.]" digits "${digits}")
  expect(step_time "${result}" "^resnet50-ring: ${digits}[0-9]* s on ${devices} devices\n$")
  run(result ${WORK}/example/step_time)
  expect("step_time without arguments" "${result}" "^resnet50-ring: [0-9.]+ s on 32 devices\n$")
endif()
file(REMOVE_RECURSE ${WORK})

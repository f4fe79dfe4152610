# Compiles sources as those of simulator/costs are compiled, with the include directories of its target (SEEN, |-separated):
#   cmake -DCOMPILER=c++ -DWORK=FOLDER -DSEEN=... -P arrows.cmake
# One that includes what the folder may see compiles, and one that includes the engine, which it may not see, does not.
string(REPLACE | ";" options "${SEEN}")
list(TRANSFORM options PREPEND -I)
function(compile header out)
  file(WRITE ${WORK}/source.cpp "#include \"${header}\"\n")
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only ${options} ${WORK}/source.cpp
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${out} ${result} PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()
compile(simulator/schedule/op.hpp result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "what simulator/costs may see does not compile:\n${text}")
endif()
compile(simulator/engine/engine.hpp result)
if(result EQUAL 0 OR NOT text MATCHES "simulator/engine/engine\\.hpp")
  message(FATAL_ERROR "the engine's header is not refused: status ${result}\n${text}")
endif()

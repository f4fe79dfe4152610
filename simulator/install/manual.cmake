# Writes what a program prints:
#   cmake -DPROGRAM=build/bin/rehearse -DMANUAL=FILE -DBASH=FILE -DZSH=FILE -DFISH=FILE -P manual.cmake
function(write file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE told RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ${ARGN}: status ${status}\n${told}")
  endif()
  file(WRITE ${file} "${text}")
endfunction()
write(${MANUAL} --manual)
write(${BASH} --completion bash)
write(${ZSH} --completion zsh)
write(${FISH} --completion fish)

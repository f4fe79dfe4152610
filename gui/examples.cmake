# Makes the files that the start page's cards open, from what the program says today:
# cmake -DREHEARSE=build/bin/rehearse -DSOURCE=. -DOUT=build/share/rehearse/examples -P gui/examples.cmake
file(REMOVE_RECURSE "${OUT}")
file(MAKE_DIRECTORY "${OUT}")
function(rehearse)
  cmake_parse_arguments(PARSE_ARGV 0 call "" "INTO" "")
  set(output OUTPUT_QUIET)
  if(call_INTO)
    set(output OUTPUT_FILE "${OUT}/${call_INTO}")
  endif()
  execute_process(COMMAND "${REHEARSE}" ${call_UNPARSED_ARGUMENTS} WORKING_DIRECTORY "${SOURCE}" ${output}
                  ERROR_VARIABLE told RESULT_VARIABLE status)
  list(GET call_UNPARSED_ARGUMENTS 0 command)
  # A sweep in which points are refused has the status 1.
  if(NOT status EQUAL 0 AND NOT (command STREQUAL sweep AND status EQUAL 1))
    message(FATAL_ERROR "rehearse ${call_UNPARSED_ARGUMENTS}: ${status}\n${told}")
  endif()
endfunction()

set(scenarios simulator/scenarios)
set(recorded benchmarks/recorded/emulated)
rehearse(simulate ${scenarios}/resnet50-ring.toml --trace "${OUT}/resnet50-ring.json.gz")
rehearse(simulate ${scenarios}/resnet50-ps.toml --set strategy.parameter_server.servers=2
         --trace "${OUT}/resnet50-servers.json.gz")
# Fewer micro-batches than the scenario has: it opens at once.
rehearse(simulate ${scenarios}/gpt3-175b.toml --set training.global_batch=768 --trace "${OUT}/gpt3-175b.json.gz")
rehearse(simulate benchmarks/emulated/star-4-16mb.toml --set strategy.data=1 --set strategy.pipeline=4
         --trace "${OUT}/predicted.json.gz")
configure_file("${SOURCE}/${recorded}/star-4-16mb-pipeline.json.gz" "${OUT}/measured.json.gz" COPYONLY)
file(GLOB runs "${SOURCE}/${recorded}/*.json.gz")
list(FILTER runs EXCLUDE REGEX "-(gpt|experts)-")  # large ones
rehearse(validate ${runs} --format csv INTO accuracy.csv)
rehearse(sweep ${scenarios}/resnet50-ring.toml --set training.micro_batch=32
         --vary strategy.gradients=all-reduce,parameter-server --vary "cluster.nodes=1..16*2"
         --out "${OUT}/scaling.csv")
rehearse(plan ${scenarios}/megatron-7.5b-interleaved.toml --out "${OUT}/plans")
foreach(rank IN ITEMS 0 1)
  configure_file("${SOURCE}/tests/traces/ddp-gloo-rank${rank}.json.gz" "${OUT}/pytorch-rank${rank}.json.gz" COPYONLY)
endforeach()

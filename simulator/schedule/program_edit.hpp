// Adds streams, tensors and ops to a program while it is being written.
#pragma once

#include <string>

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

int find_stream(const Program& program, const std::string& name);  // -1 if there is none
int stream_named(Program& program, const std::string& name);       // adds the stream if there is none
int add_tensor(Program& program, Tensor tensor);
int add_op(Program& program, Op op);                        // returns the op's index
int last_op_of_stream(const Program& program, int stream);  // -1 if the stream has no ops, or if there is no
                                                            // such stream

}  // namespace rehearse

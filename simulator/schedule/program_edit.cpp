#include "simulator/schedule/program_edit.hpp"

#include <algorithm>
#include <utility>

namespace rehearse {

int find_stream(const Program& program, const std::string& name) {
  const auto found = std::find(program.streams.begin(), program.streams.end(), name);
  return found == program.streams.end() ? -1 : static_cast<int>(found - program.streams.begin());
}

int stream_named(Program& program, const std::string& name) {
  if (const int found = find_stream(program, name); found >= 0) return found;
  program.streams.push_back(name);
  return static_cast<int>(program.streams.size()) - 1;
}

int add_tensor(Program& program, Tensor tensor) {
  program.tensors.push_back(std::move(tensor));
  return static_cast<int>(program.tensors.size()) - 1;
}

int add_op(Program& program, Op op) {
  program.ops.push_back(std::move(op));
  return static_cast<int>(program.ops.size()) - 1;
}

int last_op_of_stream(const Program& program, int stream) {
  if (stream < 0) return -1;
  for (int i = static_cast<int>(program.ops.size()) - 1; i >= 0; --i)
    if (program.ops[i].stream == stream) return i;
  return -1;
}

}  // namespace rehearse

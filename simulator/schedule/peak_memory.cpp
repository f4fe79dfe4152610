#include "simulator/schedule/peak_memory.hpp"

#include <algorithm>
#include <vector>

namespace rehearse {
namespace {

struct Lifetime {
  std::size_t first = 0, last = 0;
  bool used = false, written_first = false;
};

int first_rank_of(const Role& role, const Program& program) {
  for (int rank = 0; rank < role.size(); ++rank)
    if (std::all_of(program.where.begin(), program.where.end(), [&](const At& at) {
          return role.meshes[at.mesh].coordinate(rank, at.axis) == at.coordinate;
        }))
      return rank;
  return 0;
}

double peak_bytes(const Role& role, const Program& program) {
  std::vector<Lifetime> lives(program.tensors.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto use = [&](int tensor, bool write) {
      Lifetime& life = lives[static_cast<std::size_t>(tensor)];
      if (!life.used) {
        life.first = i;
        life.written_first = write;
      }
      life.used = true;
      life.last = i;
    };
    for (const int tensor : program.ops[i].writes) use(tensor, true);
    for (const int tensor : program.ops[i].reads) use(tensor, false);
  }
  const int rank = first_rank_of(role, program);
  double persistent = 0;
  std::vector<double> begins(program.ops.size() + 1, 0), ends(program.ops.size() + 1, 0);
  for (std::size_t t = 0; t < lives.size(); ++t) {
    if (program.tensors[t].memory != TensorMemory::device) continue;
    const double bytes = program.tensors[t].bytes.at(role, rank);
    if (program.tensors[t].persistent()) {
      persistent += bytes;
    } else if (lives[t].used) {
      begins[lives[t].written_first ? lives[t].first : 0] += bytes;
      ends[lives[t].last] += bytes;
    }
  }
  double now = persistent, most = persistent;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    now += begins[i];
    most = std::max(most, now);
    now -= ends[i];
  }
  return most;
}

}  // namespace

double peak_worker_bytes(const Schedule& schedule) {
  double most = 0;
  for (const Program& program : schedule.programs)
    if (program.role == kWorkers) most = std::max(most, peak_bytes(schedule.roles[kWorkers], program));
  return most;
}

double tensor_bytes(const Program& program, const Role& role, int rank) {
  double bytes = 0;
  for (const Tensor& tensor : program.tensors) bytes += tensor.bytes.at(role, rank) / tensor.shards;
  return bytes;
}

}  // namespace rehearse

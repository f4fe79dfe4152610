// Builds traces by hand: the trace that an executor would return for a schedule of a few ops, with times that
// a test chooses.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse::test {

inline constexpr auto kSend = Message::Direction::send;
inline constexpr auto kReceive = Message::Direction::receive;
inline constexpr int kData = 0, kPipeline = 1;  // axes

struct Row {
  int op = 0;
  double ready_s = 0, begin_s = 0, end_s = 0;
  int step = 0, iteration = 0, sender = -1;
};

inline Op compute(std::string name, std::vector<int> after = {}, int stream = 0) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::compute;
  op.stream = stream;
  op.work = 0;
  op.pass = Pass::forward;
  for (const int dependency : after) op.after.push_back({dependency});
  return op;
}

inline Op all_reduce(std::string name, std::vector<int> after = {}, int stream = 1, int axis = 0) {
  Op op = compute(std::move(name), std::move(after), stream);
  op.kind = OpKind::collective;
  op.work = -1;
  op.pass = Pass::gradient_sync;
  op.purpose = Purpose::gradient_sync;
  op.collective.group.axes = {{axis}};
  op.collective.bytes = 100;
  return op;
}

inline Op message(std::string name, Message::Direction direction, int axis, int offset,
                  std::vector<int> after = {}, int stream = 1) {
  Op op = compute(std::move(name), std::move(after), stream);
  op.kind = OpKind::exchange;
  op.work = -1;
  op.purpose = axis == kPipeline ? Purpose::pipeline : Purpose::data;
  op.messages = {{direction, Peer::along(axis, offset), 50.0}};
  return op;
}

inline Op load_batch(std::string name, std::vector<int> after = {}, int stream = 2) {
  Op op = compute(std::move(name), std::move(after), stream);
  op.kind = OpKind::host;
  op.work = -1;
  op.pass = Pass::data;
  return op;
}

inline Op sleep(std::string name, std::vector<int> after = {}) {
  Op op = load_batch(std::move(name), std::move(after));
  op.host_action = HostAction::sleep;
  return op;
}

// A class of ranks with its own program. All classes form one job of workers on a mesh data x pipeline.
struct ClassOf {
  std::string name;
  std::vector<int> ranks;
  std::vector<Op> ops;
  std::vector<Row> rows;  // in order of stream, then time
  std::vector<At> where;
};

struct TraceParts {
  int data = 1, pipeline = 1;
  std::vector<ClassOf> classes;
};

inline std::shared_ptr<Schedule> schedule_of(const TraceParts& parts) {
  auto schedule = std::make_shared<Schedule>();
  Role worker;
  worker.meshes = {Mesh({{"data", parts.data}, {"pipeline", parts.pipeline}})};
  schedule->roles = {worker};
  schedule->works.resize(1);
  for (const ClassOf& of : parts.classes) {
    Program program;
    program.name = of.name;
    program.where = of.where;
    program.streams = {"compute", "network", "host"};
    program.ops = of.ops;
    schedule->programs.push_back(std::move(program));
  }
  return schedule;
}

inline Trace make_trace(const TraceParts& parts, const std::shared_ptr<const Schedule>& schedule) {
  Trace trace;
  Job job;
  job.name = "job";
  job.phases = {{schedule, 1}};
  for (int rank = 0; rank < parts.data * parts.pipeline; ++rank) job.endpoints.push_back(rank);
  trace.run.jobs = {job};
  trace.job_failed = {false};
  for (std::size_t c = 0; c < parts.classes.size(); ++c) {
    trace.classes.push_back({0, 0, static_cast<int>(c), parts.classes[c].ranks});
    for (const Row& row : parts.classes[c].rows) {
      trace.spans.rank_class.push_back(static_cast<int>(c));
      trace.spans.phase.push_back(0);
      trace.spans.step.push_back(row.step);
      trace.spans.op.push_back(row.op);
      trace.spans.iteration.push_back(row.iteration);
      trace.spans.ready_s.push_back(row.ready_s);
      trace.spans.begin_s.push_back(row.begin_s);
      trace.spans.end_s.push_back(row.end_s);
      trace.spans.status.push_back(Status::done);
      trace.spans.sender.push_back(row.sender);
      if (row.end_s > trace.end_s) trace.end_s = row.end_s;
    }
  }
  trace.engine = {"flow", static_cast<int>(parts.classes.size()),
                  static_cast<std::int64_t>(trace.spans.size())};
  return trace;
}

inline Trace make_trace(const TraceParts& parts) {
  return make_trace(parts, schedule_of(parts));
}

}  // namespace rehearse::test

// Synchronous servers: no worker begins the next step before the servers have received the gradients of all
// workers.
#include <fmt/format.h>

#include "simulator/costs/memory.hpp"
#include "simulator/strategies/gradients/parameter_server.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {

// Each stage (each shard of its weights) has a receive stream and a send stream; one stream runs all updates.
Program synchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages,
                           const SynchronousServers& its) {
  const Training& training = plan.scenario.training;
  const StateBytes state = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  const double clients = its.clients;
  Program program;
  program.name = "server";
  program.role = its.role;
  program.streams = {"compute"};
  // A step starts to receive only after the step before has sent all its weights: the next gradients depend
  // on them.
  const int begin = add_op(program, idle_op(plan, program, "begin step"));
  Op end = idle_op(plan, program, "end step");

  // The last stage's gradients are ready first.
  const std::vector<WeightHolders> holders = weight_holders(plan);
  for (auto holder = holders.rbegin(); holder != holders.rend(); ++holder) {
    const StageProgram* stage = &stages[static_cast<std::size_t>(holder->stage)];
    const Peer its_clients = Peer::each(its.client_role, holder->where);
    const std::string& of = holder->name;
    int sent = -1;
    for (std::size_t b = 0; b < stage->buckets.size(); ++b) {
      const Bucket& bucket = stage->buckets[b];
      if (bucket.parameters == 0) continue;
      const double share = bucket.parameters / its.servers,
                   pushed_bytes = push_bytes(plan, bucket, its.servers);
      const std::string what = fmt::format("bucket {}{}", b, of);
      const int pushed =
          add_tensor(program, server_tensor(TensorKind::buffer, "pushed gradients, " + what, bucket,
                                            training.gradient_precision, clients * pushed_bytes,
                                            {its.servers, its.clients}));
      const int weights =
          add_tensor(program, server_tensor(TensorKind::weight, "weights, " + what, bucket,
                                            training.precision, share * state.weight, {its.servers}));
      Op receive = bucket_exchange(program, "receive " + what, "receive" + of, bucket,
                                   Message::Direction::receive, {its_clients}, pushed_bytes);
      receive.after = {{begin}};
      receive.writes = {pushed};
      const int received = add_op(program, std::move(receive));

      Work work = update_work(plan, bucket, its.servers);
      work.name += " " + what;
      if (clients > 1)  // summing all gradients reads them once; the update already counts one
        work.kernels.push_back(memory_kernel((clients - 1) * pushed_bytes));
      plan.schedule.works.push_back(std::move(work));
      Op update = update_op(program, "update " + what, "compute", bucket,
                            static_cast<int>(plan.schedule.works.size()) - 1);
      update.after = {{received}};
      update.reads = {pushed};
      update.writes = {weights};
      if (state.optimizer > 0)
        update.writes.push_back(
            add_tensor(program, server_tensor(TensorKind::optimizer_state, "optimizer state, " + what, bucket,
                                              Precision::fp32, share * state.optimizer, {its.servers})));
      const int updated = add_op(program, std::move(update));

      Op send = bucket_exchange(program, "send " + what, "send" + of, bucket, Message::Direction::send,
                                {its_clients}, pull_bytes(plan, bucket, its.servers));
      send.after = {{updated}};
      send.reads = {weights};
      sent = add_op(program, std::move(send));
    }
    if (sent >= 0) end.after.push_back({sent});
  }
  add_op(program, std::move(end));
  return program;
}

}  // namespace rehearse

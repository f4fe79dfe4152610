// Tells why real ranks would not train what a schedule says.
#include <fmt/format.h>

#include <cmath>

#include "backend/training/carried_out.hpp"
#include "backend/training/training_workload.hpp"

namespace rehearse {
namespace {

// Returns the reason if collectives or parameter servers move numbers that a network does not have.
std::string moves_other_numbers(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    for (const Op& op : program.ops) {
      const auto of_kind = [&](const std::vector<int>& tensors, TensorKind kind) {
        return !tensors.empty() && program.tensors[tensors.front()].kind == kind;
      };
      const bool moves_gradients = of_kind(op.reads, TensorKind::gradient) && op.reads == op.writes;
      const bool of_workload = op.action.kind == Action::Kind::change ||
                               op.action.kind == Action::Kind::sum_shared || is_of_shards(op);
      if (op.kind == OpKind::collective && !of_workload &&
          (op.collective.kind != CollectiveKind::all_reduce || !moves_gradients))
        return fmt::format("\"{}\" sums something other than gradients", op.name);
      const bool messages = op.kind == OpKind::exchange && op.action.kind != Action::Kind::pass_keys &&
                            op.purpose != Purpose::input;
      for (std::size_t m = 0; messages && m < op.messages.size(); ++m) {
        const int t = tensor_of(op, static_cast<int>(m));
        const bool server = program.role != 0 && t >= 0;
        const bool worker =
            t >= 0 && (program.tensors[t].boundary >= 0 || program.tensors[t].kind == TensorKind::weight ||
                       program.tensors[t].kind == TensorKind::gradient);
        if (!server && !worker)
          return fmt::format("\"{}\" carries something other than values of layers", op.name);
      }
    }
  return "";
}

// Returns the reason if a transformer's gradients cannot be synchronized as the schedule does it.
std::string why_not_shared(const Scenario& scenario, const Schedule& schedule) {
  if (!std::holds_alternative<Transformer>(scenario.model.shape)) return "";
  if (scenario.training.precision != Precision::fp32)
    return fmt::format("a transformer in {}", name_of(scenario.training.precision));
  if (compresses(schedule)) return "compressed gradients of a transformer";
  if (gathers_outputs(schedule)) return "DataParallel of a transformer";
  const auto& transformer = std::get<Transformer>(scenario.model.shape);
  if (!transformer.tied_embeddings || scenario.strategy.pipeline == 1) return "";
  const double table = transformer.vocabulary / scenario.strategy.tensor * transformer.hidden;
  if (has_shards(schedule) && std::fmod(table, scenario.strategy.data) != 0)
    return fmt::format("a tied embedding of {} weights in {} shards", table, scenario.strategy.data);
  if (process_ranks(schedule) > schedule.roles.front().size())
    return "parameter servers with a tied embedding on the first and the last stage (tied_embeddings = "
           "false)";
  return "";
}

}  // namespace

std::string why_not_trained(const Scenario& scenario, const Schedule& schedule, bool on_processors) {
  if (std::string why = why_no_network(scenario); !why.empty()) return why;
  if (scenario.strategy.batch_by == BatchBy::speed && scenario.strategy.data > 1)
    return "replicas that train different numbers of samples (strategy.batch_by = \"equal\")";
  if (std::string why = why_not_carried_out(schedule); !why.empty()) return why;
  if (std::string why = why_not_shared(scenario, schedule); !why.empty()) return why;
  if (scenario.strategy.tensor > 1 && scenario.strategy.tensor_overlap == TensorOverlap::chunks)
    return "products in chunks (tensor_overlap = \"weight-gradients\" or \"none\")";
  if (cuts_layers(scenario, schedule)) return "buckets that end inside layers (bucket_unit = \"layer\")";
  const Precision precision = scenario.training.precision;
  const auto name = [](Precision p) { return kPrecisionNames[static_cast<std::size_t>(p)]; };
  const bool on_gpus = precision == Precision::bf16 || precision == Precision::tf32;
  const bool known = precision == Precision::fp32 || (!on_processors && on_gpus);
  if (!known || scenario.training.gradient_precision != Precision::fp32)
    return fmt::format("training in {} with gradients in {}", name(precision),
                       name(scenario.training.gradient_precision));
  const Precision stored = precision == Precision::tf32 ? Precision::fp32 : precision;
  if (scenario.training.activation_precision != stored)
    return fmt::format("activations are sent in {}", name(scenario.training.activation_precision));
  if (compresses(schedule)) {
    const Compression kind = scenario.strategy.compression.kind;
    const std::string_view compression = kCompressionNames[static_cast<std::size_t>(kind)];
    if (precision != Precision::fp32)
      return fmt::format("gradients are compressed ({}) with weights in {}", compression, name(precision));
    if (!on_processors && kind == Compression::fp16 &&
        scenario.run.collectives == RealRun::Collectives::schedule)
      return "gradients are added up in fp16, and messages between GPUs are added up in fp32";
    if (kind == Compression::fp16 && on_processors &&
        scenario.run.collectives == RealRun::Collectives::library)
      return "gradients are added up in fp16, and the library's all-reduce adds in fp32";
    return "";
  }
  if (has_shards(schedule) && precision != Precision::fp32)
    return fmt::format("weights are sharded in {}", name(precision));
  if (averages(schedule))
    return precision == Precision::bf16 ? "weights are averaged, and bf16 has two copies of them" : "";
  if (gathers_outputs(schedule))
    return precision == Precision::fp32 ? "" : fmt::format("DataParallel in {}", name(precision));
  return moves_other_numbers(schedule);
}

}  // namespace rehearse

#include "backend/cuda/nccl_calls.hpp"

#include <fmt/format.h>

#include "backend/runtime/communicators.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

struct Type {
  ncclDataType_t nccl = ncclFloat32;
  std::size_t bytes = 4;
};
Type type_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return {ncclFloat32, 4};
    case Precision::fp16:
      return {ncclFloat16, 2};
    case Precision::bf16:
      return {ncclBfloat16, 2};
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  throw RunError(fmt::format("a collective of {} numbers; allowed: fp32, fp16, bf16", name_of(precision)));
}

// Ends the group in any case and returns the first error.
ncclResult_t each_to_each(ncclComm_t communicator, std::byte* data, std::size_t count, Type type, int members,
                          int member, cudaStream_t stream) {
  const auto part = [&](int from, int to) { return data + pair_part(count, members, from, to) * type.bytes; };
  ncclResult_t result = ncclGroupStart();
  if (is_error(result)) return result;
  for (int far = 1; far < members && !is_error(result); ++far) {
    const int to = (member + far) % members, from = (member - far + members) % members;
    result = ncclSend(part(member, to), count, type.nccl, to, communicator, stream);
    if (is_error(result)) break;
    result = ncclRecv(part(from, member), count, type.nccl, from, communicator, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return is_error(result) ? result : ended;
}

}  // namespace

ncclResult_t nccl_collective(ncclComm_t communicator, CollectiveKind kind, const Payload& payload,
                             int members, int member, cudaStream_t stream) {
  const Type type = type_of(payload.type);
  const ncclRedOp_t reduction = payload.reduction == Collective::Reduction::maximum ? ncclMax : ncclSum;
  const CollectiveCall call = collective_call(kind, payload.bytes / type.bytes, members, member);
  std::byte* const send = payload.data + call.send * type.bytes;
  std::byte* const receive = payload.data + call.receive * type.bytes;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return ncclAllReduce(send, receive, call.count, type.nccl, reduction, communicator, stream);
    case CollectiveKind::reduce_scatter:
      return ncclReduceScatter(send, receive, call.count, type.nccl, reduction, communicator, stream);
    case CollectiveKind::all_gather:
      return ncclAllGather(send, receive, call.count, type.nccl, communicator, stream);
    case CollectiveKind::broadcast:
      return ncclBroadcast(send, receive, call.count, type.nccl, 0, communicator, stream);
    case CollectiveKind::reduce:
      return ncclReduce(send, receive, call.count, type.nccl, reduction, 0, communicator, stream);
    case CollectiveKind::all_to_all:
      return each_to_each(communicator, payload.data, call.count, type, members, member, stream);
  }
  return ncclInvalidArgument;
}

ncclResult_t nccl_message(ncclComm_t communicator, bool send, const Payload& payload, int peer,
                          cudaStream_t stream) {
  return send ? ncclSend(payload.data, payload.bytes, ncclUint8, peer, communicator, stream)
              : ncclRecv(payload.data, payload.bytes, ncclUint8, peer, communicator, stream);
}

}  // namespace rehearse

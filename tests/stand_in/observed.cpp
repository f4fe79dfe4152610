#include "tests/stand_in/observed.hpp"

#include <atomic>
#include <utility>

#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

namespace stand_in {
namespace {

std::atomic<const Observer*> observer{nullptr};

}  // namespace

// Kernels captured in a graph get a launch number when the graph runs them, others when they are pushed.
void push_kernel(cudaStream_t stream, std::string name, std::function<void()> operation) {
  const Observer* observing = observer;
  if (observing == nullptr) return push(stream, std::move(operation));
  const bool by_graph = is_capturing(stream);
  const std::uint32_t launch = by_graph ? 0 : observing->launched();
  push(stream, [=, name = std::move(name), number = stream_number(stream), operation = std::move(operation)] {
    const double begin_s = now_s();
    operation();
    observing->ended(name.c_str(), by_graph ? observing->launched() : launch, number, begin_s, now_s());
  });
}

}  // namespace stand_in

void stand_in_observe(const stand_in::Observer* observer) {
  stand_in::observer = observer;
}

#include "backend/training/ring_keys.hpp"

namespace rehearse {

RingKeys::RingKeys(Arithmetic& arithmetic, std::size_t elements)
    : arithmetic_(&arithmetic), elements_(elements), sent_(arithmetic, 2 * elements, Precision::fp32) {
  for (OwnedArray& each : received_) each = OwnedArray(arithmetic, 2 * elements, Precision::fp32);
  for (OwnedArray& each : gradients_) each = OwnedArray(arithmetic, elements, Precision::fp32);
}

Array RingKeys::held(int step, const Array& own) const {
  return step == 0 ? own : received_[static_cast<std::size_t>(step) % 2]->part(0, elements_);
}

Array RingKeys::gradients(int step) const {
  return gradients_[static_cast<std::size_t>(step) % 2];
}

Array RingKeys::sent(int stream, const RingMessage& message, const Array& own) {
  const std::size_t before = message.keys() ? elements_ : 0;
  if (message.keys()) arithmetic_->copy(stream, held(message.step, own), sent_->part(0, elements_));
  if (!message.gradients()) return sent_->part(0, before);
  const Array gradients = sent_->part(before, elements_);
  arithmetic_->copy(stream, gradients_[static_cast<std::size_t>(message.step - 1) % 2], gradients);
  // The previous message brought the gradients from other ranks, after any keys in it.
  RingMessage last = message;
  --last.step;
  if (last.gradients())
    arithmetic_->add(
        stream,
        received_[static_cast<std::size_t>(message.step) % 2]->part(last.keys() ? elements_ : 0, elements_),
        gradients);
  return sent_->part(0, before + elements_);
}

Array RingKeys::received(const RingMessage& message) const {
  return received_[static_cast<std::size_t>(message.step + 1) % 2]->part(
      0, ((message.keys() ? 1 : 0) + (message.gradients() ? 1 : 0)) * elements_);
}

}  // namespace rehearse

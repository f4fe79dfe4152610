// Carries bytes on flows. While a flow is alone on all its links, its end is known and its actor only waits;
// SimGrid shares the links from the moment when another flow joins it.
#pragma once

#include <memory>
#include <vector>

#include "simulator/engine/bell.hpp"
#include "simulator/engine/platform.hpp"

namespace rehearse {

class Carrier {
public:
  // The platform must outlive the carrier. `all_shared`: SimGrid carries even flows that are alone, because
  // events may change links, or because messages follow one another so closely that every rounding counts.
  Carrier(Platform& platform, bool all_shared);

  // Waits until the bytes are carried. Throws NetworkFailureException if a link on the flow's route died.
  void carry(int flow, double bytes);
  // Starts to carry bytes beside other flows that the same actor carries. When they are carried, which the
  // caller waits for, it must call ended().
  sg::s4u::CommPtr start(int flow, double bytes);
  void ended(int flow);

private:
  // An actor that waits for the end of a flow that is alone.
  struct Waiting {
    Bell bell;
    bool joined = false;  // by another flow
  };

  bool is_alone(int flow) const;
  void occupy(int flow, Waiting* alone);
  void leave(int flow);

  Platform& platform_;
  bool all_shared_;
  std::vector<int> flows_on_;                      // by link: how many it carries
  std::vector<Waiting*> alone_on_;                 // by link: who waits for its only flow; null: nobody
  std::vector<std::unique_ptr<Waiting>> waiting_;  // by flow; null: it was never alone
};

}  // namespace rehearse

#include "backend/runtime/workload.hpp"

#include "models/text/error.hpp"

namespace rehearse {

void Workload::input(const OpCall&) {
  throw RunError("batches are to be loaded, and nothing here does it");
}

}  // namespace rehearse

// Links as a transport has them: collectives as executors carry them out over it.
#pragma once

#include <memory>

#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// Opens the transport. Collectives: the mean of several in a row, after one that brings the ranks together;
// of chains until the last member is done.
std::unique_ptr<LinkCarrier> transport_links(Transport& transport);

}  // namespace rehearse

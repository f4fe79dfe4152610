// Measures links over a transport, with collectives that run as in executors.
#pragma once

#include <memory>

#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// Opens the transport. The time of a collective is the mean of several in a row, after one that synchronizes
// the ranks; along chains, it ends when the last member is done.
std::unique_ptr<LinkCarrier> transport_links(Transport& transport);

}  // namespace rehearse

// Classifies trace events into Rehearse's kinds by category and name.
#pragma once

#include <optional>
#include <string_view>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

struct Sorted {
  Kind kind = Kind::other;
  Pass pass = Pass::none;
  bool operator==(const Sorted&) const = default;
};

// Classifies an op of a trace written by Rehearse: `category` is its pass; `kind` and `host_action` are its
// arguments "kind" and "action".
Sorted sorted_op(std::string_view category, std::string_view kind, std::string_view host_action);
// Classifies an event of PyTorch's profiler with a table of rules; nullopt if the profiler has no such
// category.
std::optional<Sorted> sorted_profiled(std::string_view category, std::string_view name);
// Whether events of this category run on GPU streams.
bool is_on_gpu(std::string_view category);
// Bytes per element of a type as PyTorch names it ("Float", "c10::BFloat16"); 0: not known.
int bytes_of_type(std::string_view type);

}  // namespace rehearse::gui

// What an event of a trace is: sorted into our kinds by its category and its name.
#pragma once

#include <optional>
#include <string_view>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

struct Sorted {
  Kind kind = Kind::other;
  Pass pass = Pass::none;
  bool operator==(const Sorted&) const = default;
};

// An op of a trace of our own: `category` is the pass; `kind` and `host_action` are the arguments "kind" and
// "action".
Sorted sorted_op(std::string_view category, std::string_view kind, std::string_view host_action);
// Of PyTorch's profiler, by a table of rules; nothing if the category is none of its.
std::optional<Sorted> sorted_profiled(std::string_view category, std::string_view name);
// Events of this category lie on streams of a GPU.
bool is_on_gpu(std::string_view category);
// Bytes of an element of this type, as PyTorch calls it ("Float", "c10::BFloat16"); 0: not known.
int bytes_of_type(std::string_view type);

}  // namespace rehearse::gui

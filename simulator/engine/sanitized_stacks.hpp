// Informs the address sanitizer of SimGrid's stacks; other builds leave this out.
//
// An exception makes the sanitizer clean the stack that it believes to be active: that of the process, unless
// it is informed of another. SimGrid throws an exception at each actor's end, when only SimGrid's own frames
// are left; this code reports where they are. An actor that is stopped early, or whose link dies, leaves
// frames that stay poisoned. Runs in which that can happen use threads as actors, which take some ten times
// as long.
#pragma once

#include <cstddef>
#include <functional>

#if defined(__SANITIZE_ADDRESS__)  // GCC
#define REHEARSE_ADDRESS_SANITIZER
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer)
#define REHEARSE_ADDRESS_SANITIZER
#endif
#endif

#ifdef REHEARSE_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace rehearse::sg {

// Must be set before the first actor starts.
inline bool& actors_are_threads() {
  static bool threads = false;
  return threads;
}

#ifdef REHEARSE_ADDRESS_SANITIZER

inline constexpr bool kSanitized = true;

struct StackBounds {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

inline StackBounds tell_stack(const StackBounds& bounds) {
  StackBounds before;
  __sanitizer_start_switch_fiber(nullptr, bounds.bottom, bounds.bytes);
  __sanitizer_finish_switch_fiber(nullptr, &before.bottom, &before.bytes);
  return before;
}

inline StackBounds& stack_of_process() {
  static StackBounds bounds;
  return bounds;
}

inline std::function<void()> telling_its_stack(const std::function<void()>& code) {
  if (actors_are_threads()) return code;
  return [code] {
    code();
    constexpr std::size_t kBytes = 8192;  // more than SimGrid's last frames take
    const StackBounds before =
        tell_stack({static_cast<const char*>(__builtin_frame_address(0)) - kBytes, kBytes});
    if (stack_of_process().bottom == nullptr) stack_of_process() = before;
  };
}

// Called after the run.
inline void tell_stack_of_process() {
  if (stack_of_process().bottom != nullptr) tell_stack(stack_of_process());
  stack_of_process() = {};
}

#else

inline constexpr bool kSanitized = false;

inline const std::function<void()>& telling_its_stack(const std::function<void()>& code) {
  return code;
}
inline void tell_stack_of_process() {}

#endif

}  // namespace rehearse::sg

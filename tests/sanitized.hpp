// Whether this is a build for the address sanitizer, in which the dearest tests take smaller cases.
#pragma once

namespace rehearse::testing {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rehearse::testing

// Names the axis or role that an op serves, for breakdowns, advice and comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

// The axis or role that an op serves. Its traits name the time that ranks spend waiting for ops of this
// purpose.
enum class Purpose : std::uint8_t {
  none,  // not reported separately
  data,
  fusion_cycle,
  gradient_sync,
  pipeline,
  servers,
  tensor,
  weights,
  context,
  experts,
  host_copy,
  host_update,
  nvme,
  input,       // the batches to train on
  checkpoint,  // of the weights and the optimizer's state
};
struct PurposeTraits {
  std::string_view waiting;            // "exposed tensor communication"
  bool late_side_is_a_bubble = false;  // while a side is not ready, the pipeline has a bubble
};
inline constexpr std::array<PurposeTraits, 15> kPurposes = {{{"communication"},
                                                             {"data communication"},
                                                             {"fusion cycle"},
                                                             {"gradient sync"},
                                                             {"pipeline transfer", true},
                                                             {"server transfer"},
                                                             {"tensor communication"},
                                                             {"weight gathering"},
                                                             {"context communication"},
                                                             {"expert communication"},
                                                             {"host copy"},
                                                             {"host update"},
                                                             {"NVMe transfer"},
                                                             {"data"},
                                                             {"checkpoint"}}};
inline std::string waiting(Purpose purpose) {
  return std::string(kPurposes[static_cast<std::size_t>(purpose)].waiting);
}
constexpr const PurposeTraits& traits_of(Purpose purpose) {
  return kPurposes[static_cast<std::size_t>(purpose)];
}

// Returns the purpose whose waiting time has this name.
inline std::optional<Purpose> purpose_named(std::string_view waiting) {
  for (std::size_t i = 0; i < kPurposes.size(); ++i)
    if (kPurposes[i].waiting == waiting) return static_cast<Purpose>(i);
  return std::nullopt;
}

}  // namespace rehearse

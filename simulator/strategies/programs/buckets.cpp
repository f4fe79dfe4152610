#include "simulator/strategies/programs/buckets.hpp"

#include <algorithm>

namespace rehearse {

std::vector<Bucket> gradient_buckets(const std::vector<double>& layer_parameters, int first_layer,
                                     double bytes_per_parameter, double first_cap_bytes, double cap_bytes) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (int i = static_cast<int>(layer_parameters.size()) - 1; i >= 0; --i) {
    if (!open) buckets.push_back({first_layer + i, first_layer + i});
    Bucket& bucket = buckets.back();
    bucket.first_layer = first_layer + i;
    bucket.parameters += layer_parameters[i];
    const double limit = buckets.size() == 1 ? std::min(first_cap_bytes, cap_bytes) : cap_bytes;
    open = bucket.parameters == 0 || bucket.parameters * bytes_per_parameter < limit;
  }
  return buckets;
}

}  // namespace rehearse

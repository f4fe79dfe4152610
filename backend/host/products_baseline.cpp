#define Eigen eigen_baseline
#include "backend/host/products_code.hpp"

namespace rehearse {

void multiply_baseline(const HostProduct& product) {
  multiply_all(product);
}

}  // namespace rehearse

#define Eigen eigen_avx2
#include "backend/host/products_code.hpp"

namespace rehearse {

void multiply_avx2(const HostProduct& product) {
  multiply_all(product);
}

}  // namespace rehearse

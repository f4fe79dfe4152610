#define Eigen eigen_avx512
#include "backend/host/products_code.hpp"

namespace rehearse {

void multiply_avx512(const HostProduct& product) {
  multiply_all(product);
}

}  // namespace rehearse

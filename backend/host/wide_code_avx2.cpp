#define Eigen eigen_avx2
#include "backend/host/wide_functions.hpp"

namespace rehearse {

WideCode wide_code_avx2() {
  return code_here();
}

}  // namespace rehearse

#define Eigen eigen_avx512
#include "backend/host/wide_functions.hpp"

namespace rehearse {

WideCode wide_code_avx512() {
  return code_here();
}

}  // namespace rehearse

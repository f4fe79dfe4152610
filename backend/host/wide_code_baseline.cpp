#define Eigen eigen_baseline
#include "backend/host/wide_functions.hpp"

namespace rehearse {

WideCode wide_code_baseline() {
  return code_here();
}

}  // namespace rehearse

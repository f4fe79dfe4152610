// The main header of the installed library: reads a scenario, predicts its step and evaluates it. All other
// headers are installed as well and keep their paths: "simulator/planner/collective_times.hpp".
#pragma once

#include "models/text/data_folder.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

#ifdef REHEARSE_DATA_DIR  // by find_package(Rehearse)
namespace rehearse {
inline const bool kInstalledDataAreSearched = add_data_place(REHEARSE_DATA_DIR);
}
#endif

// Finds the data that are shipped with the programs: presets, scenarios, measurements, examples.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace rehearse {

// Returns the folder `inside` ("models/presets") of the first of these places that has it: $REHEARSE_DATA;
// ../share/rehearse relative to the executable, so that an installation can be moved; the places given to
// add_data_place(); the source tree; the install prefix. If no place has it, returns that of the first place,
// which does not exist. Throws InputError if REHEARSE_DATA is set but is not a folder.
std::filesystem::path data_folder(const std::filesystem::path& inside);

// Adds a place to search, for programs that link the installed library and are not beside its data. Returns
// true.
bool add_data_place(std::filesystem::path place);

// Returns the folders that data_folder() searches, joined by commas.
std::string searched_folders(const std::filesystem::path& inside);

// Returns what an error message allows: the known names or, if there are none, the folders that were
// searched.
std::string allowed_names(std::span<const std::string> known, const std::filesystem::path& inside);

}  // namespace rehearse

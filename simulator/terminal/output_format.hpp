// Names the formats in which commands write their answers.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

enum class Format { text, json, csv };
inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "json", "csv"};

}  // namespace rehearse

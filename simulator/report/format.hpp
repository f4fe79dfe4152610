// Formats figures for people: three or four digits and a unit. fmt makes them independent of the locale.
#pragma once

#include <string>

#include "topologies/device.hpp"

namespace rehearse {

// A scale for times that are shown together: the unit and digits that suit `largest_s`.
class TimeScale {
public:
  explicit TimeScale(double largest_s);
  std::string operator()(double seconds) const;  // "24.63 s"

private:
  double unit_s_ = 1;
  const char* unit_ = "s";
  int decimals_ = 2;
};

std::string with_digits(double value,
                        int digits);    // significant ones, no exponent, thousands grouped: "1,024", "0.0123"
std::string with_prefix(double value);  // "128 k", "3.5 M", "62"
std::string in_percent(double share);   // "76.8 %"
std::string signed_percent(double share);                          // "-2.4 %"; never "-0.0 %"
std::string device_noun(const Device& device);                     // "GPU", or "device" for processors
std::string in_money(double amount, const std::string& currency);  // "12.3 USD", "3.40 M USD"
std::string in_watt_hours(double wh);                              // "4.56 kWh"
std::string in_grams(double grams);                                // "293 t"
std::string in_gibibytes(double bytes);                            // 2^30 bytes, without the unit: "71.2"
std::string counted(double number, const std::string& noun);       // "1 stage", "8 stages"
// Returns the text as a CSV field, quoted if it has a comma or a quote (RFC 4180). Escapes control
// characters, so that a record is one line.
std::string csv_field(const std::string& text);

std::string in_gb_per_s(double bytes_per_s);  // "12.5 GB/s"
// Returns "3.2 days", "7.5 hours", "12.1 s", for example.
std::string duration(double seconds);

}  // namespace rehearse

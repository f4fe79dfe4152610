#include "backend/emulate/shaping.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// Measured on 2 cores that others used too, by TCP between hosts of a star and of two leaves (from the
// sender's start to the receiver's last byte, divided by bytes / (rate x 1448 / 1514)); medians:
//   one flow            100 Mbit/s  128 KiB 0.978  256 KiB 0.985  1 MiB 0.998  16 MiB 1.000
//                       200         128 KiB 0.990  256 KiB 0.993  1 MiB 0.994  16 MiB 1.000
//                       400         128 KiB 0.994  256 KiB 1.000  1 MiB 0.996  16 MiB 1.019
//                      1000         128 KiB 0.966  256 KiB 0.970  1 MiB 0.993  16 MiB 1.028
//   2, 4 on one cable   200, 1000   256 KiB 0.992 to 0.999, 4 MiB 1.001 to 1.008
//   incast of 3, 7      200         256 KiB 0.988, 0.995    4 MiB 0.999, 1.000
//                      1000         256 KiB 0.942, 0.975    4 MiB 0.999, 1.005
//   ring of 8, slowest  100         1 MiB 1.04   4 MiB 1.05
//   of the 8 flows      200         256 KiB 1.07  1 MiB 1.02  4 MiB 1.11
//                       400         256 KiB 1.11  1 MiB 1.03  4 MiB 1.02
//                       500         256 KiB 1.09  1 MiB 1.09  4 MiB 1.04
//   tree 2:1, 4:1       200         1 MiB 1.014, 1.007      4 MiB 1.012, 1.015
//                       500         1 MiB 1.060, 1.007      4 MiB 1.023, 1.006
//   half of them cross  200, 500    1 MiB 1.14, 1.15        4 MiB 1.03, 1.03
// The processor was fully busy with other work during these measurements. Without its influence, repetitions
// vary by 0.1 to 1 %; single ones took up to 5 times as long, so use medians. A round trip of 64 bytes takes
// 0.02 to 0.04 ms when idle, up to 4.3 ms (8 ms in 1 of 100) beside bulk data on the sender's cable, and 9 to
// 11 ms where two senders of bulk data meet. Smaller segments cost too much: with 4 KiB, a ring of 8 at 500
// Mbit/s takes 2.5 to 7 times its time. With buckets of 60 us at switches too, and segments of 200 us, the
// 2:1 tree at 200 Mbit/s takes 1.10 to 1.13. Without `window`, queues grow to 45 ms at 1 Gbit/s and 400 ms at
// 100 Mbit/s.
constexpr double kHostBucket_s = 50e-6;
constexpr double kLeastBucketBytes = 2000;
constexpr double kSwitchBucket_s = 400e-6;

constexpr double kSegment_s = 300e-6;
constexpr double kLeastSegmentBytes = 4096;
constexpr double kMostSegmentBytes = 16384;
constexpr double kMostSegmentBytesFast = 65536;
constexpr double kFastSegment_s = 50e-6;  // 16384 bytes take less from 2.6 Gbit/s on

constexpr double kWindow_s = 3e-3;
constexpr double kLeastWindow = 32;

}  // namespace

long bucket_bytes(double bandwidth, bool out_of_host) {
  return static_cast<long>(
      std::max(kLeastBucketBytes, bandwidth * (out_of_host ? kHostBucket_s : kSwitchBucket_s)));
}

int segment_bytes(double bandwidth) {
  const double most = std::clamp(bandwidth * kFastSegment_s, kMostSegmentBytes, kMostSegmentBytesFast);
  return static_cast<int>(std::clamp(bandwidth * kSegment_s, kLeastSegmentBytes, most));
}

int window_segments(double bandwidth, double round_trip_s) {
  return static_cast<int>(std::max(kLeastWindow, bandwidth * (kWindow_s + round_trip_s) / kSegmentBytes));
}

const std::vector<std::pair<std::string, std::string>>& network_settings() {
  static const std::vector<std::pair<std::string, std::string>> settings = {
      {"ipv4/ip_forward", "1"},
      // Routes in the two directions may differ.
      {"ipv4/conf/all/rp_filter", "0"},
      {"ipv4/conf/default/rp_filter", "0"},
      // The window is fixed (the routes' `window`), so nothing is lost and no rate needs to be probed: bbr,
      // the default of some machines, would pace by its own estimate of the rate.
      {"ipv4/tcp_congestion_control", "reno"},
      {"ipv4/tcp_slow_start_after_idle", "0"},
      {"ipv4/tcp_no_metrics_save", "1"},
      // Automatic tuning would raise the window above the route's.
      {"ipv4/tcp_moderate_rcvbuf", "0"},
      // The receive buffer holds what arrives while the receiver is not running; the window is smaller than
      // that.
      {"ipv4/tcp_rmem", "4096 1048576 8388608"},
      {"ipv4/tcp_wmem", "4096 262144 4194304"},
      // A closed socket with unacknowledged bytes keeps its namespace until its last retransmission: after 3
      // of them some seconds, after the default of 8 more than a minute.
      {"ipv4/tcp_orphan_retries", "3"},
  };
  return settings;
}

}  // namespace rehearse

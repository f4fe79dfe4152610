#include "tests/stand_in/shared.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/stand_in/settings.hpp"

namespace stand_in {

// Creates a sparse file: pages that no process writes take no memory.
SharedMemory::SharedMemory(const std::string& name, int members) : name_(name), members_(members) {
  const auto n = static_cast<std::size_t>(members);
  bytes_ = sizeof(SharedState) + kChunk * (n + n * n);
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0) violation("no shared memory: " + name);
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) violation("no shared memory: " + name);
  state_ = static_cast<SharedState*>(memory);
}

SharedMemory::~SharedMemory() {
  munmap(state_, bytes_);
}

std::byte* SharedMemory::shown_by(int member) const {
  return reinterpret_cast<std::byte*>(state_ + 1) + kChunk * static_cast<std::size_t>(member);
}

std::byte* SharedMemory::mail(int from, int to) const {
  return shown_by(members_ + from * members_ + to);
}

void SharedMemory::unlink() const {
  shm_unlink(name_.c_str());
}

bool wait_until(const std::function<bool()>& reached, const std::atomic<bool>& stopped) {
  for (int tries = 0; !reached(); ++tries) {
    if (stopped) return false;
    if (tries < 20)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace stand_in

#include "backend/emulate/namespaces.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "models/text/error.hpp"

namespace rehearse {
namespace {

constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

Descriptor own_namespace() {
  Descriptor fd(open(kOwnNamespace, O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0)
    throw RunError(fmt::format("an emulated cluster needs Linux network namespaces; {}: {}", kOwnNamespace,
                               std::strerror(errno)));
  return fd;
}

bool write_file(const std::string& path, const std::string& text) {
  const Descriptor fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.get() >= 0 && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Makes a process without root privileges root in new namespaces.
bool enter_user_namespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  // The change of credentials hides /proc/PID/fd of this process from programs that it starts; this reverts
  // that.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  write_file("/proc/self/setgroups", "deny");
  return write_file("/proc/self/uid_map", fmt::format("0 {} 1", user)) &&
         write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

std::string read_all(int fd) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(fd, 0, SEEK_END), 0)), '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

struct Ended {
  bool good = false;
  std::string said;
};

// Also searches the usual folders of `ip` and `tc`, which are not in every user's PATH.
const char* find_program(const std::string& name, std::string& path) {
  const char* const set = std::getenv("PATH");
  std::string folders = std::string(set != nullptr ? set : "") + ":/usr/sbin:/sbin:/usr/bin:/bin";
  for (std::size_t from = 0; from <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', from), folders.size());
    path = folders.substr(from, end - from) + "/" + name;
    if (end > from && access(path.c_str(), X_OK) == 0) return path.c_str();
    from = end + 1;
  }
  throw RunError(fmt::format("an emulated cluster needs the program {} (package iproute2); it is not in {}",
                             name, folders));
}

Ended run(const std::string& program, const std::vector<std::string>& lines) {
  std::string path;
  find_program(program, path);
  std::string script;
  for (const auto& line : lines) script += line + "\n";
  const Descriptor in(memfd_create("batch", MFD_CLOEXEC)), out(memfd_create("said", MFD_CLOEXEC));
  if (in.get() < 0 || out.get() < 0 ||
      write(in.get(), script.data(), script.size()) != static_cast<ssize_t>(script.size()) ||
      lseek(in.get(), 0, SEEK_SET) != 0)
    throw RunError(fmt::format("no memory for the commands to {}: {}", program, std::strerror(errno)));

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.get(), 0);
  posix_spawn_file_actions_adddup2(&files, out.get(), 1);
  posix_spawn_file_actions_adddup2(&files, out.get(), 2);
  std::string name = program, batch = "-batch", standard_input = "-";
  char* const arguments[] = {name.data(), batch.data(), standard_input.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw RunError(fmt::format("{} does not start: {}", path, std::strerror(failed)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, read_all(out.get())};
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor make_namespace() {
  const Descriptor home = own_namespace();
  if (unshare(CLONE_NEWNET) != 0) {
    const int error = errno;
    if (error != EPERM || !enter_user_namespace() || unshare(CLONE_NEWNET) != 0)
      throw RunError(error == EPERM
                         ? std::string("an emulated cluster needs root: this user may not create network "
                                       "namespaces (run it with sudo)")
                         : fmt::format("no network namespace can be created: {}", std::strerror(error)));
    // The original namespace belongs to the real root. It cannot be entered again, and nothing here needs it.
    return own_namespace();
  }
  Descriptor made = own_namespace();
  if (setns(home.get(), CLONE_NEWNET) != 0)
    throw RunError(fmt::format("cannot go back to a network namespace: {}", std::strerror(errno)));
  return made;
}

InNamespace::InNamespace(const Descriptor& space) : home_(own_namespace()) {
  if (setns(space.get(), CLONE_NEWNET) != 0)
    throw RunError(fmt::format("cannot enter a network namespace: {}", std::strerror(errno)));
}

InNamespace::~InNamespace() {
  // Cannot normally fail, since it was left a moment ago; a thread that stayed would do everything in the
  // wrong network.
  if (setns(home_.get(), CLONE_NEWNET) != 0) std::abort();
}

void run_batch(const std::string& program, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  const Ended ended = run(program, lines);
  if (ended.good) return;
  // Parses "Command failed -:12".
  std::string command;
  const std::size_t at = ended.said.rfind("-:");
  if (at != std::string::npos) {
    const long line = std::strtol(ended.said.c_str() + at + 2, nullptr, 10);
    if (line >= 1 && line <= static_cast<long>(lines.size()))
      command = lines[static_cast<std::size_t>(line - 1)];
  }
  std::string said = ended.said.substr(0, ended.said.find("Command failed"));
  while (!said.empty() && said.back() == '\n') said.pop_back();
  throw RunError(fmt::format("the emulated cluster cannot be built: `{} {}`: {}", program, command, said));
}

bool try_batch(const std::string& program, const std::vector<std::string>& lines) {
  return run(program, lines).good;
}

bool set_sysctl(const std::string& name, const std::string& value) {
  return write_file("/proc/sys/net/" + name, value);
}

}  // namespace rehearse

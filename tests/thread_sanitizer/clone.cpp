// Replaces clone() in the window's tests under the thread sanitizer. Qt starts programs as vfork() does:
// until the child calls exec, it shares this process's memory, and the sanitizer loses track of the locks
// that the calling thread holds. This clone() gives the child its own memory, as fork() does.
#include <dlfcn.h>
#include <sched.h>
#include <sys/types.h>

#include <cstdarg>

extern "C" int clone(int (*run)(void*), void* stack, int flags, void* argument, ...) {
  va_list further;
  va_start(further, argument);
  auto* const parent_tid = va_arg(further, pid_t*);
  void* const tls = va_arg(further, void*);
  auto* const child_tid = va_arg(further, pid_t*);
  va_end(further);
  static const auto original = reinterpret_cast<decltype(&clone)>(dlsym(RTLD_NEXT, "clone"));
  return original(run, stack, flags & ~(CLONE_VM | CLONE_VFORK), argument, parent_tid, tls, child_tid);
}

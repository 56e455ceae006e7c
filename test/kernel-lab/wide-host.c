/*
 * A host whose processor has AMX, for tests on those that have none. Preloaded, it answers ptrace as such a host does: the
 * set of extended registers has 11,008 bytes, and is taken whole or not at all. What is behind the real set must be zeros.
 *
 * Alone it ends User Mode Linux in its first process; whole-registers.c in front of it must prevent that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { GET_REGISTER_SET = 0x4204, SET_REGISTER_SET = 0x4205, WIDE = 11008 };

static void *const extended_registers = (void *)0x202;

static long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

static long get_wide_set(long process, struct iovec *asked) {
  static unsigned char wide[WIDE];
  memset(wide, 0, sizeof wide);
  struct iovec real = {wide, sizeof wide};
  long result = call_kernel(SYS_ptrace, GET_REGISTER_SET, process, (long)extended_registers, (long)&real, 0, 0);
  if (result != 0) return result;
  if (asked->iov_len > WIDE) asked->iov_len = WIDE;
  memcpy(asked->iov_base, wide, asked->iov_len);
  return 0;
}

static long set_wide_set(long process, const struct iovec *given) {
  static unsigned char scratch[WIDE];
  struct iovec real = {scratch, sizeof scratch};
  if (given->iov_len != WIDE) {
    errno = EFAULT;
    return -1;
  }
  long result = call_kernel(SYS_ptrace, GET_REGISTER_SET, process, (long)extended_registers, (long)&real, 0, 0);
  if (result != 0) return result;
  const unsigned char *bytes = given->iov_base;
  for (size_t i = real.iov_len < 2696 ? 2696 : real.iov_len; i < WIDE; i++) {
    if (bytes[i] != 0) {
      errno = EINVAL;
      return -1;
    }
  }
  real.iov_base = given->iov_base;
  return call_kernel(SYS_ptrace, SET_REGISTER_SET, process, (long)extended_registers, (long)&real, 0, 0);
}

static long answer(long request, long process, void *address, void *data) {
  if (address == extended_registers && request == GET_REGISTER_SET) return get_wide_set(process, data);
  if (address == extended_registers && request == SET_REGISTER_SET) return set_wide_set(process, data);
  return call_kernel(SYS_ptrace, request, process, (long)address, (long)data, 0, 0);
}

long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
  long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_ptrace) return answer(a, b, (void *)c, (void *)d);
  return call_kernel(number, a, b, c, d, e, f);
}

/* Only where whole-registers.c is not in front. */
long ptrace(int request, ...) {
  va_list rest;
  va_start(rest, request);
  long process = va_arg(rest, int);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (request >= 1 && request <= 3) {
    long word;
    if (answer(request, process, address, &word) < 0) return -1;
    errno = 0;
    return word;
  }
  return answer(request, process, address, data);
}

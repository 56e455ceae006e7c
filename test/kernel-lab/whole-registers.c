/*
 * Lets User Mode Linux 6.1 run on a processor whose extended registers it does not know all of (AMX adds 8 KiB).
 *
 * Before it lets a process of its own run on, that kernel restores the registers with PTRACE_SETREGSET. It hands over
 * the 2,696 bytes of a processor without AMX. The host takes the set whole or not at all, so it answers EFAULT, and the
 * kernel ends with "put_fp_registers". This library stands between the two, by LD_PRELOAD: where the set is shorter than
 * the host's, it hands over a whole one. What is missing is in its initial state, which is all that a process of that kernel
 * can have in it: to use AMX takes a permission (arch_prctl) that User Mode Linux does not know.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  PEEK_TEXT = 1,
  PEEK_USER = 3,
  GET_REGISTER_SET = 0x4204,
  SET_REGISTER_SET = 0x4205,
};

/* The set of extended registers, in the form of the instruction XSAVE. */
static void *const extended_registers = (void *)0x202;

/*
 * Not on the stack: the kernel calls this on a stack of its own, of 16 KiB. It runs on one processor, and one at a time.
 * Larger than any processor's set; where one is larger still, the host's answer is as if this library were not there.
 */
static unsigned char whole_set[65536] __attribute__((aligned(64)));
static size_t whole_length;

static long call_host(long request, long process, void *address, void *data) {
  return syscall(SYS_ptrace, request, process, address, data);
}

static size_t find_whole_length(long process) {
  struct iovec set = {whole_set, sizeof whole_set};
  if (call_host(GET_REGISTER_SET, process, extended_registers, &set) != 0) return 0;
  return set.iov_len;
}

static long set_extended_registers(long process, struct iovec *given) {
  if (whole_length == 0) whole_length = find_whole_length(process);
  if (given->iov_len >= whole_length) return call_host(SET_REGISTER_SET, process, extended_registers, given);
  memcpy(whole_set, given->iov_base, given->iov_len);
  memset(whole_set + given->iov_len, 0, whole_length - given->iov_len);
  struct iovec whole = {whole_set, whole_length};
  return call_host(SET_REGISTER_SET, process, extended_registers, &whole);
}

long ptrace(int request, ...) {
  va_list rest;
  va_start(rest, request);
  long process = va_arg(rest, int);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);

  if (request == SET_REGISTER_SET && address == extended_registers) return set_extended_registers(process, data);
  if (request >= PEEK_TEXT && request <= PEEK_USER) {
    /* The host writes the word to an address; the C library gives it as the result. */
    long word;
    if (call_host(request, process, address, &word) < 0) return -1;
    errno = 0;
    return word;
  }
  return call_host(request, process, address, data);
}

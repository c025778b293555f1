// libpm's mappings past ASan, which would write the shadow of each and so double what an iteration
// takes. Nothing poisons the shadow of mappings that it does not know, so that they count as
// addressable.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *address, size_t size)
{
    return (int)syscall(SYS_munmap, address, size);
}

// A record that has been changed leads to other sums than it says. Who means harm would know them; the
// mutator does not, and is to get past pm_open().
int __wrap_sums_check_fixed(const void *)
{
    return 0;
}
}

#include "common/mounting.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test
{

bool enter_own_mounts()
{
    static bool inside;
    inside = inside || (unshare(CLONE_NEWNS) == 0 &&
                        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    return inside;
}

bool mount_tmpfs(const std::string &at, const std::string &settings)
{
    return mount("libpm-test", at.c_str(), "tmpfs", 0, settings.c_str()) == 0;
}

bool may_mount()
{
    const pid_t child = fork();
    if (child == 0)
        _exit(enter_own_mounts() && mount_tmpfs("/dev/shm", "size=4096") ? 0 : 1);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

} // namespace test

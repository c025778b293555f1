// Mounting file systems that only this process and its children see.
#ifndef TESTS_MOUNTING_HPP
#define TESTS_MOUNTING_HPP

#include <string>

namespace test
{

// A mount namespace for this process, once. False with errno if this user may not have one.
bool enter_own_mounts();

// Mount a tmpfs; `settings` as for mount(2). False with errno.
bool mount_tmpfs(const std::string &at, const std::string &settings);

// Whether this user may do both; a child tries.
bool may_mount();

} // namespace test

#endif

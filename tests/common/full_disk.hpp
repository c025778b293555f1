// A disk that is full on demand, for the chunks of log containers. A program linked with full_disk.cpp and
// --wrap=container_grow_chunks gets ENOSPC where the file would grow.
#ifndef TESTS_COMMON_FULL_DISK_HPP
#define TESTS_COMMON_FULL_DISK_HPP

#include <cstdint>

namespace test
{

extern bool disk_is_full, grows_by_least; // the second: by no more chunks than are needed
// Room for so many chunks more; UINT32_MAX: for any number. Who links with --wrap=container_has_room, too,
// lets libpm see it.
extern uint32_t disk_has;

} // namespace test

#endif

/*
 * Bytes written to the medium below a directory: sectors that its block device was asked to write.
 * The file system's own journal is among them, as it should be, and so is what other programs write
 * meanwhile. The kernel's counter for a process (write_bytes in /proc/self/io) would leave both
 * out, but it counts pages when they are made dirty, and a page cache of large folios takes a store
 * of one page for one of hundreds.
 */
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bench
{

/**
 * Write out all that is dirty, so that it counts, then read the counter. Empty where the file
 * system spans several devices.
 */
std::optional<uint64_t> bytes_written(const std::string &directory);

} // namespace bench

// A file of records: the log of writes, and the manifest.
//
//     record   checksum, 8 bytes | length, 4 bytes | place, 8 bytes | the bytes
//
// `place` is the record's own offset. The checksum covers all behind it.
//
// A crash may tear the last records. So the log ends with the first record whose checksum is wrong. But if a
// good record follows, the medium has lost something that was acknowledged. That is an error.
#ifndef EXAMPLES_LSM_LOG_HPP
#define EXAMPLES_LSM_LOG_HPP

#include "lsm/file.hpp"

#include <exception>
#include <functional>
#include <mutex>

namespace lsm
{

class Log
{
  public:
    explicit Log(const std::string &path) : file_(path, File::Use::append) {}

    void append(std::string_view record); // if it fails, nothing of it is there
    // What was appended survives a power failure. Thread-safe, but not beside append(). Once it has failed,
    // it always fails: the kernel reports an error once only.
    void sync();

  private:
    File file_;
    std::mutex syncing_;
    bool is_synced_ = false;
    std::exception_ptr failure_;
};

// Call `each` with every record in order. Returns whether the last one ends the file: if not, a crash tore
// the end, and the file takes no more records. EBADMSG: a record in the middle is damaged.
bool read_log(const std::string &path, const std::function<void(std::string_view)> &each);

} // namespace lsm

#endif

// Value files: in mode `key_lsm`, values lie apart from their keys, and are never moved by a compaction.
// (WiscKey, Lu et al., FAST 2016; Sakoda, Aota, Kono: "Improving an LSM-tree key-value store with NVDIMM".)
//
//     value     checksum, 4 bytes | the bytes
//     address   number of the file | offset of the value | its bytes; each a varint
//
// Tables have addresses, and the manifest says how many bytes of which value files each table needs. So it is
// always known what is garbage. A file is deleted when no table needs it, and nobody reads such a table.
//
// The checksum covers the offset too, so a value in the wrong place is noticed.
#ifndef EXAMPLES_LSM_VALUES_HPP
#define EXAMPLES_LSM_VALUES_HPP

#include "lsm/file.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace lsm
{

struct Address {
    uint64_t number, offset, bytes;

    uint64_t space() const { return sizeof(uint32_t) + bytes; } // in the file
    std::string text() const;
    static std::optional<Address> of(std::string_view text); // no value if it is none
};

// A shorter value stays with its key: its address would be about as long.
constexpr size_t apart_min = 32;

// Reads values. Thread-safe. The file is opened when a value is wanted. So if it is missing, only reads of
// its values fail.
class ValueFile
{
  public:
    ValueFile(const std::string &directory, uint64_t number);
    ~ValueFile();
    ValueFile(const ValueFile &) = delete;

    std::string read(const Address &address) const; // EBADMSG; ENOENT
    uint64_t number() const { return number_; }
    uint64_t bytes() const { return bytes_; } // as it was found; 0 if it was missing

    // Tables of the store need it. When the last does not, it is deleted, once nobody has it.
    void add_user() { users_++; }
    void remove_user() { users_--; }
    void delete_if_unused() { obsolete_ = users_ == 0; }

  private:
    const std::string path_;
    const uint64_t number_;
    uint64_t bytes_ = 0;
    std::atomic<unsigned> users_ = 0;
    std::atomic<bool> obsolete_ = false;
    mutable std::once_flag opening_;
    mutable File file_;
};

// The value files of a store, each once. Thread-safe.
class ValueFiles
{
  public:
    explicit ValueFiles(const std::string &directory) : directory_(directory) {}
    std::shared_ptr<ValueFile> get(uint64_t number);
    const std::string &directory() const { return directory_; }

  private:
    const std::string directory_;
    std::mutex lock_;
    std::map<uint64_t, std::weak_ptr<ValueFile>> files_;
};

// Writes values, one behind the other. When a file has `file_bytes`, the next begins. So if keys come in
// order, a file has those of a small range, and little else changes when its garbage is collected.
class ValueWriter
{
  public:
    ValueWriter(const std::string &directory, uint64_t file_bytes,
                const std::function<uint64_t()> &new_number);
    ~ValueWriter(); // deletes what was not kept

    Address append(std::string_view value);
    void finish(); // all values survive a power failure
    void keep();   // tables that count have their addresses

  private:
    void begin_file();
    void end_file();
    void write();

    const std::string directory_;
    const uint64_t file_bytes_;
    const std::function<uint64_t()> new_number_;
    std::vector<std::string> paths_; // of files to be deleted
    File file_;
    uint64_t number_ = 0; // of the file; 0: none
    std::string waiting_; // bytes that are to be written behind it
};

std::string value_path(const std::string &directory, uint64_t number);

} // namespace lsm

#endif

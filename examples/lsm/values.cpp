#include "lsm/values.hpp"

#include "lsm/bytes.hpp"
#include "lsm/lsm.hpp"

#include <filesystem>
#include <unistd.h>
#include <utility>
#include <xxhash.h>

namespace lsm
{
namespace
{

constexpr size_t write_bytes = 1 << 20; // at once

uint32_t checksum(std::string_view value, uint64_t offset)
{
    return static_cast<uint32_t>(XXH3_64bits_withSeed(value.data(), value.size(), offset));
}

} // namespace

std::string value_path(const std::string &directory, uint64_t number)
{
    return numbered_path(directory, number, "values");
}

std::string Address::text() const
{
    std::string text;
    for (const uint64_t part : {number, offset, bytes})
        put_varint(text, part);
    return text;
}

std::optional<Address> Address::of(std::string_view text)
{
    Reader in{text};
    const Address address{in.varint(), in.varint(), in.varint()};
    return in.ok && in.rest.empty() ? std::optional(address) : std::nullopt;
}

ValueFile::ValueFile(const std::string &directory, uint64_t number)
    : path_(value_path(directory, number)), number_(number)
{
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(path_, missing);
    bytes_ = missing ? 0 : bytes;
}

ValueFile::~ValueFile()
{
    if (obsolete_)
        unlink(path_.c_str());
}

std::string ValueFile::read(const Address &address) const
{
    try {
        std::call_once(opening_, [&] { file_ = File(path_, File::Use::read); });
    } catch (const Error &error) {
        throw Error(error.code().value(),
                    error.what() + ("; a value is at offset " + std::to_string(address.offset)));
    }
    if (address.bytes > file_.size())
        damaged(path_, address.offset, "the file ends before the value that is to be here");
    std::string text = file_.read(address.offset, address.space());
    const auto sum = fixed_at<uint32_t>(text.data());
    text.erase(0, sizeof sum);
    if (sum != checksum(text, address.offset))
        damaged(path_, address.offset, "a value is damaged");
    return text;
}

std::shared_ptr<ValueFile> ValueFiles::get(uint64_t number)
{
    std::lock_guard guard(lock_);
    std::weak_ptr<ValueFile> &known = files_[number];
    std::shared_ptr<ValueFile> file = known.lock();
    if (file)
        return file;
    known = file = std::make_shared<ValueFile>(directory_, number);
    if (std::has_single_bit(files_.size())) // now and then
        std::erase_if(files_, [](const auto &f) { return f.second.expired(); });
    return file;
}

ValueWriter::ValueWriter(const std::string &directory, uint64_t file_bytes,
                         const std::function<uint64_t()> &new_number)
    : directory_(directory), file_bytes_(file_bytes), new_number_(new_number)
{
}

ValueWriter::~ValueWriter()
{
    for (const std::string &path : paths_)
        unlink(path.c_str());
}

Address ValueWriter::append(std::string_view value)
{
    if (number_ == 0 || file_.size() + waiting_.size() >= file_bytes_)
        begin_file();
    const Address address{number_, file_.size() + waiting_.size(), value.size()};
    put_fixed(waiting_, checksum(value, address.offset));
    waiting_ += value;
    if (waiting_.size() >= write_bytes)
        write();
    return address;
}

void ValueWriter::write()
{
    file_.append(waiting_);
    waiting_.clear();
    file_.begin_write_back();
}

void ValueWriter::begin_file()
{
    end_file();
    const uint64_t number = new_number_();
    const std::string path = value_path(directory_, number);
    paths_.push_back(path);
    file_ = File(path, File::Use::create);
    number_ = number;
}

void ValueWriter::end_file()
{
    if (std::exchange(number_, 0) == 0)
        return;
    write();
    file_.sync();
}

void ValueWriter::finish()
{
    end_file();
    if (!paths_.empty())
        sync_directory(directory_);
}

void ValueWriter::keep()
{
    paths_.clear();
}

} // namespace lsm

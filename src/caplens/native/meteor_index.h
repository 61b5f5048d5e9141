// METEOR's indexes as files: a header, then sections of (count, elements, padding to 8 bytes), in the machine's own byte
// order, because an index is built where it is used.
//
// A file is believed only after its checksum and every number in it that says where something lies were checked. It is read
// whole and not mapped: a mapped file that somebody shortens ends the process with SIGBUS. Only a copy in memory that is
// sealed against any change (storage/sealed.py) is mapped, so that processes on one machine share it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace caplens::meteor {

inline constexpr std::string_view synonym_kind = "clsyn-02";
inline constexpr std::string_view paraphrase_kind = "clpar-02";

struct Header {
    std::array<char, 8> kind;
    std::uint64_t size;
    std::uint64_t checksum;       // of the whole file with a zero in this place
    std::array<char, 64> source;  // sha256 of what the index was built from
};

// No index of METEOR's kind comes near this, and every offset fits into 32 bits.
inline constexpr std::uint64_t largest_index = std::uint64_t{1} << 32;

// A file that is no index of this version, or whose content was changed, cut or crafted: it has to be built again.
class DamagedIndex : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline std::size_t padded(std::size_t size) { return (size + 7) / 8 * 8; }

inline std::uint64_t slot_hash(std::string_view key) {  // FNV-1a, folded
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (unsigned char c : key) hash = (hash ^ c) * 0x100000001b3ULL;
    return hash ^ (hash >> 32);
}

// What may name the source of an index.
bool is_plain_name(std::string_view name);

// Of a file whose header's own checksum is zero; against accidents, not against forgers.
std::uint64_t checksum(const Header &header, std::span<const std::byte> after_header);

// The content of an index of this kind, checked as a whole.
class IndexFile {
public:
    IndexFile(const std::filesystem::path &path, std::string_view kind);
    std::span<const std::byte> sections() const { return {sections_.get(), size_}; }
    const std::string &source() const { return source_; }
    // Throws DamagedIndex, with the file's name, unless this holds.
    void require(bool is_sound) const;

private:
    [[noreturn]] void refuse(const char *why) const;
    std::filesystem::path path_;
    std::shared_ptr<const std::byte> sections_;  // aligned for every kind of element
    std::size_t size_ = 0;
    std::string source_;
};

// Reads the sections of an index one after the other, each behind its element count.
class SectionReader {
public:
    explicit SectionReader(const IndexFile &file) : file_(file), rest_(file.sections()) {}
    template <class T>
    std::span<const T> next() {
        auto [data, count] = take(sizeof(T));
        return {reinterpret_cast<const T *>(data), count};
    }
    // Where each of so many lists begins in the section after this one, and where the last ends.
    std::span<const std::uint32_t> next_starts(std::size_t lists) {
        auto starts = next<std::uint32_t>();
        file_.require(starts.size() == lists + 1 && starts.front() == 0);
        return starts;
    }
    // The lists must follow one another and end where their section does.
    void check_starts(std::span<const std::uint32_t> starts, std::size_t total) const;
    void check_end() const { file_.require(rest_.empty()); }
    const IndexFile &file() const { return file_; }

private:
    std::pair<const std::byte *, std::size_t> take(std::size_t size);
    const IndexFile &file_;
    std::span<const std::byte> rest_;
};

// Strings to consecutive numbers, by open addressing.
class StringTable {
public:
    StringTable() = default;
    explicit StringTable(SectionReader &reader);
    std::optional<std::uint32_t> find(std::string_view key) const;
    std::size_t size() const { return offsets_.size() - 1; }

private:
    std::span<const std::uint32_t> slots_, offsets_;
    std::span<const char> text_;
};

}  // namespace caplens::meteor

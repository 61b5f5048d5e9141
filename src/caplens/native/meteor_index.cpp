// Reading indexes; meteor_build.cpp writes them.
#include "meteor_index.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace caplens::meteor {

namespace {

constexpr std::array<std::uint64_t, 4> multipliers{0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0xD6E8FEB86659FD93u,
                                                   0xA0761D6478BD642Fu};

std::uint64_t scramble(std::uint64_t one, std::uint64_t other) {
    const auto product = static_cast<unsigned __int128>(one) * other;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

using Sections = std::shared_ptr<const std::byte>;

// What follows the header in a file of this size that nobody can change any more; nothing if it is no such file.
Sections map_sealed([[maybe_unused]] const std::filesystem::path &path, [[maybe_unused]] std::size_t size) {
#ifdef __linux__
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return nullptr;
    struct stat status {};
    const int found = fcntl(file, F_GET_SEALS);
    const bool is_sealed = found >= 0 && (found & seals) == seals &&
                           fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) == size;
    void *mapped = is_sealed ? mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (mapped == MAP_FAILED) return nullptr;
    const Sections whole(static_cast<const std::byte *>(mapped),
                                                 [size](const std::byte *start) { munmap(const_cast<std::byte *>(start), size); });
    return {whole, whole.get() + sizeof(Header)};
#else
    return nullptr;
#endif
}

Sections read_sections(std::ifstream &file, std::size_t size) {
    const auto words = std::make_shared_for_overwrite<std::uint64_t[]>(padded(size) / 8);
    if (!file.read(reinterpret_cast<char *>(words.get()), static_cast<std::streamsize>(size))) return nullptr;
    return {words, reinterpret_cast<const std::byte *>(words.get())};
}

}  // namespace

bool is_plain_name(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
}

std::uint64_t checksum(const Header &header, std::span<const std::byte> after_header) {
    std::array<std::uint64_t, 4> lanes = multipliers;
    const auto add = [&](std::span<const std::byte> bytes) {
        std::array<std::uint64_t, 8> block;
        for (; bytes.size() >= sizeof block; bytes = bytes.subspan(sizeof block)) {
            std::memcpy(block.data(), bytes.data(), sizeof block);
            for (std::size_t lane = 0; lane < lanes.size(); ++lane)
                lanes[lane] = scramble(block[2 * lane] ^ multipliers[lane], block[2 * lane + 1] ^ lanes[lane]);
        }
        block.fill(bytes.size() + 1);
        if (!bytes.empty()) std::memcpy(block.data(), bytes.data(), bytes.size());
        for (std::size_t lane = 0; lane < lanes.size(); ++lane)
            lanes[lane] = scramble(block[2 * lane] ^ multipliers[lane], block[2 * lane + 1] ^ lanes[lane]);
    };
    Header blank = header;
    blank.checksum = 0;
    add(std::as_bytes(std::span(&blank, 1)));
    add(after_header);
    return scramble(scramble(lanes[0], lanes[1] ^ multipliers[3]) ^ multipliers[2], scramble(lanes[2], lanes[3]) ^ multipliers[1]);
}

IndexFile::IndexFile(const std::filesystem::path &path, std::string_view kind) : path_(path) {
    if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) refuse("is not a regular file");
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::filesystem::filesystem_error("cannot open", path, {errno ? errno : EIO, std::generic_category()});
    const std::uint64_t size = std::filesystem::file_size(path);
    Header header{};
    if (size < sizeof header || !file.read(reinterpret_cast<char *>(&header), sizeof header)) refuse("is cut short");
    if (std::string_view(header.kind.data(), header.kind.size()) != kind) refuse("is not of this kind or version");
    if (header.size != size || size > largest_index) refuse("has not the size it was written with");
    size_ = static_cast<std::size_t>(size - sizeof header);
    sections_ = map_sealed(path, static_cast<std::size_t>(size));
    if (!sections_) sections_ = read_sections(file, size_);
    if (!sections_) refuse("is cut short");
    if (checksum(header, sections()) != header.checksum) refuse("is damaged: its checksum differs");
    source_.assign(header.source.begin(), std::find(header.source.begin(), header.source.end(), '\0'));
    require(is_plain_name(source_));
}

void IndexFile::require(bool is_sound) const {
    if (!is_sound) refuse("is damaged: its parts do not fit together");
}

void IndexFile::refuse(const char *why) const { throw DamagedIndex("the index " + path_.string() + " " + why); }

std::pair<const std::byte *, std::size_t> SectionReader::take(std::size_t size) {
    std::uint64_t count = 0;
    file_.require(rest_.size() >= sizeof count);
    std::memcpy(&count, rest_.data(), sizeof count);
    rest_ = rest_.subspan(sizeof count);
    file_.require(count <= rest_.size() / size && padded(count * size) <= rest_.size());
    const std::byte *data = rest_.data();
    rest_ = rest_.subspan(padded(count * size));
    return {data, count};
}

void SectionReader::check_starts(std::span<const std::uint32_t> starts, std::size_t total) const {
    file_.require(starts.back() == total && std::is_sorted(starts.begin(), starts.end()));
}

StringTable::StringTable(SectionReader &reader) : slots_(reader.next<std::uint32_t>()) {
    offsets_ = reader.next<std::uint32_t>();
    text_ = reader.next<char>();
    const IndexFile &file = reader.file();
    file.require(!offsets_.empty() && offsets_.front() == 0);
    reader.check_starts(offsets_, text_.size());
    // A search ends at an empty slot, so that there has to be one.
    file.require(std::has_single_bit(slots_.size()) && slots_.size() > size());
    std::size_t used = 0;
    std::uint32_t most = 0;
    for (const std::uint32_t slot : slots_) {
        used += slot != 0;
        most = std::max(most, slot);
    }
    file.require(used == size() && most <= size());
}

std::optional<std::uint32_t> StringTable::find(std::string_view key) const {
    std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = slot_hash(key) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
        std::uint32_t index = slots_[slot] - 1;
        std::string_view held(text_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]);
        if (held == key) return index;
    }
    return std::nullopt;
}

}  // namespace caplens::meteor

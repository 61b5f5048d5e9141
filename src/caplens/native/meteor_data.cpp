// Reading the mapped indexes; meteor_build.cpp writes them.
#include "meteor_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "meteor_index.h"

namespace caplens::meteor {

MappedFile::MappedFile(const std::filesystem::path &path) {
    int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) throw std::runtime_error("cannot open " + path.string());
    struct stat info {};
    if (::fstat(handle, &info) == 0 && info.st_size > 0) {
        size_ = static_cast<std::size_t>(info.st_size);
        void *mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, handle, 0);
        if (mapped != MAP_FAILED) data_ = static_cast<const std::byte *>(mapped);
    }
    ::close(handle);
    if (!data_) throw std::runtime_error("cannot map " + path.string());
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte *>(data_), size_); }

SectionReader::SectionReader(std::span<const std::byte> bytes, std::string_view kind) : rest_(bytes) {
    Header header{};
    if (bytes.size() < sizeof header) throw std::runtime_error("the index is too short");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::string_view(header.kind.data(), header.kind.size()) != kind)
        throw std::runtime_error("the index is not of this kind or version");
    if (header.size != bytes.size()) throw std::runtime_error("the index is cut short");
    source_.assign(header.source.data(), strnlen(header.source.data(), header.source.size()));
    rest_ = rest_.subspan(sizeof header);
}

std::pair<const std::byte *, std::size_t> SectionReader::take(std::size_t size) {
    std::uint64_t count = 0;
    if (rest_.size() < sizeof count) throw std::runtime_error("the index is damaged");
    std::memcpy(&count, rest_.data(), sizeof count);
    rest_ = rest_.subspan(sizeof count);
    if (count > rest_.size() / size) throw std::runtime_error("the index is damaged");
    const std::byte *data = rest_.data();
    rest_ = rest_.subspan(std::min(padded(count * size), rest_.size()));
    return {data, count};
}

StringTable::StringTable(SectionReader &reader)
    : slots_(reader.next<std::uint32_t>()), offsets_(reader.next<std::uint32_t>()), text_(reader.next<char>()) {}

std::optional<std::uint32_t> StringTable::find(std::string_view key) const {
    if (slots_.empty()) return std::nullopt;
    std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = slot_hash(key) & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
        std::uint32_t index = slots_[slot] - 1;
        std::string_view held(text_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]);
        if (held == key) return index;
    }
    return std::nullopt;
}

Synonyms::Synonyms(const std::filesystem::path &path) : file_(path) {
    SectionReader reader(file_.bytes(), synonym_kind);
    source_ = reader.source();
    words_ = StringTable(reader);
    word_starts_ = reader.next<std::uint32_t>();
    word_sets_ = reader.next<std::uint32_t>();
    irregular_ = StringTable(reader);
    irregular_starts_ = reader.next<std::uint32_t>();
    irregular_sets_ = reader.next<std::uint32_t>();
}

std::span<const std::uint32_t> Synonyms::of(const StringTable &table, std::span<const std::uint32_t> starts,
                                            std::span<const std::uint32_t> sets, std::string_view word) const {
    auto index = table.find(word);
    if (!index) return {};
    return sets.subspan(starts[*index], starts[*index + 1] - starts[*index]);
}

std::vector<std::uint32_t> Synonyms::synsets(std::string_view word) const {
    auto own = of(words_, word_starts_, word_sets_, word);
    std::vector<std::uint32_t> found(own.begin(), own.end());
    std::span<const std::uint32_t> base;
    if (irregular_.find(word)) {
        base = of(irregular_, irregular_starts_, irregular_sets_, word);
    } else if (word.size() > 2 && !word.ends_with("ss")) {  // shorter ones are their own base form
        // WordNet's rules of detachment: nouns, verbs, adjectives; the first that gives a known word counts.
        static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> rules{
            {{"s", ""},   {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"}, {"men", "man"},
             {"ies", "y"}, {"es", "e"}, {"es", ""},   {"ed", "e"},  {"ed", ""},     {"ing", "e"},   {"ing", ""},
             {"er", ""},  {"est", ""},  {"er", "e"},  {"est", "e"}}};
        auto attempt = [&](const auto &rule) {
            if (!word.ends_with(rule.first)) return false;
            std::string candidate(word.substr(0, word.size() - rule.first.size()));
            candidate += rule.second;
            if (!words_.find(candidate)) return false;
            base = of(words_, word_starts_, word_sets_, candidate);
            return true;
        };
        (void)std::any_of(rules.begin(), rules.end(), attempt);
    }
    found.insert(found.end(), base.begin(), base.end());
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

Paraphrases::Paraphrases(const std::filesystem::path &path) : file_(path) {
    SectionReader reader(file_.bytes(), paraphrase_kind);
    source_ = reader.source();
    words_ = StringTable(reader);
    labels_ = reader.next<std::uint16_t>();
    child_starts_ = reader.next<std::uint32_t>();
    target_starts_ = reader.next<std::uint32_t>();
    targets_ = reader.next<std::uint16_t>();
}

std::uint32_t Paraphrases::step(std::uint32_t node, std::uint16_t word) const {
    auto first = labels_.begin() + child_starts_[node], last = labels_.begin() + child_starts_[node + 1];
    auto found = std::lower_bound(first, last, word);
    return found != last && *found == word ? static_cast<std::uint32_t>(found - labels_.begin()) : nowhere;
}

}  // namespace caplens::meteor

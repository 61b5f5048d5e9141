// METEOR's data as files that are mapped, not read: synonym sets and the paraphrase table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace caplens::meteor {

// A whole file mapped read-only; pages come in as they are touched.
class MappedFile {
public:
    explicit MappedFile(const std::filesystem::path &path);
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;
    std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
    const std::byte *data_ = nullptr;
    std::size_t size_ = 0;
};

// Reads the sections of a mapped index one after the other, each behind its element count.
class SectionReader {
public:
    SectionReader(std::span<const std::byte> bytes, std::string_view kind);
    template <class T>
    std::span<const T> next() {
        auto [data, count] = take(sizeof(T));
        return {reinterpret_cast<const T *>(data), count};
    }
    std::string source() const { return source_; }

private:
    std::pair<const std::byte *, std::size_t> take(std::size_t size);
    std::span<const std::byte> rest_;
    std::string source_;
};

// Strings to consecutive numbers, by open addressing inside a mapped file.
class StringTable {
public:
    StringTable() = default;
    explicit StringTable(SectionReader &reader);
    std::optional<std::uint32_t> find(std::string_view key) const;

private:
    std::span<const std::uint32_t> slots_, offsets_;
    std::span<const char> text_;
};

// WordNet synsets of a word as METEOR looks them up: by the word, and by its base form (exceptions, else suffix rules).
class Synonyms {
public:
    explicit Synonyms(const std::filesystem::path &path);
    std::vector<std::uint32_t> synsets(std::string_view word) const;  // sorted, without doubles
    const std::string &source() const { return source_; }

private:
    std::span<const std::uint32_t> of(const StringTable &table, std::span<const std::uint32_t> starts,
                                      std::span<const std::uint32_t> sets, std::string_view word) const;
    MappedFile file_;
    std::string source_;
    StringTable words_, irregular_;
    std::span<const std::uint32_t> word_starts_, word_sets_, irregular_starts_, irregular_sets_;
};

// The paraphrase table: a trie of phrases, each with the phrases it may stand for, in the order of the table.
class Paraphrases {
public:
    static constexpr std::uint32_t nowhere = 0;  // the root is nobody's child
    explicit Paraphrases(const std::filesystem::path &path);
    std::optional<std::uint32_t> word(std::string_view text) const { return words_.find(text); }
    std::uint32_t step(std::uint32_t node, std::uint16_t word) const;
    // [length, words …] of every paraphrase of the phrase that ends in this node
    std::span<const std::uint16_t> targets(std::uint32_t node) const {
        return targets_.subspan(target_starts_[node], target_starts_[node + 1] - target_starts_[node]);
    }
    const std::string &source() const { return source_; }

private:
    MappedFile file_;
    std::string source_;
    StringTable words_;
    std::span<const std::uint16_t> labels_, targets_;
    std::span<const std::uint32_t> child_starts_, target_starts_;
};

// Collects the paraphrase table from its text (three lines an entry: probability, phrase, paraphrase) and writes the index.
class ParaphraseBuilder {
public:
    void feed(std::string_view chunk);
    void write(const std::filesystem::path &path, const std::string &source);
    std::size_t entries() const { return lines_ / 3; }

private:
    void line(std::string_view text);
    std::uint16_t word(std::string_view text);
    std::string partial_;
    std::size_t lines_ = 0;
    std::u16string phrase_;
    std::unordered_map<std::string, std::uint16_t> vocabulary_;
    std::vector<std::string> words_;
    std::unordered_map<std::u16string, std::u16string> targets_;
};

// Writes the synonym index: words and irregular forms, each with its synsets.
using SynsetLists = std::vector<std::pair<std::string, std::vector<std::uint32_t>>>;
void write_synonyms(const std::filesystem::path &path, const SynsetLists &words, const SynsetLists &irregular,
                    const std::string &source);

}  // namespace caplens::meteor

// METEOR's data: synonym sets and the paraphrase table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hashing.h"
#include "interrupt.h"
#include "meteor_index.h"

namespace caplens::meteor {

// WordNet synsets of a word as METEOR looks them up: by the word, and by its base form (exceptions, else suffix rules).
class Synonyms {
public:
    explicit Synonyms(const std::filesystem::path &path);
    std::vector<std::uint32_t> synsets(std::string_view word) const;  // sorted, without doubles
    const std::string &source() const { return file_.source(); }

private:
    // Words, each with its synsets.
    struct Lists {
        Lists() = default;
        explicit Lists(SectionReader &reader);
        std::span<const std::uint32_t> of(std::uint32_t word) const {
            return sets.subspan(starts[word], starts[word + 1] - starts[word]);
        }
        StringTable words;
        std::span<const std::uint32_t> starts, sets;
    };
    IndexFile file_;
    Lists regular_, irregular_;
};

// The paraphrase table: a trie of phrases, each with the phrases it may stand for, in the order of the table.
class Paraphrases {
public:
    static constexpr std::uint32_t nowhere = 0;  // the root is nobody's child
    static constexpr std::size_t most_words = 1 << 16, longest_phrase = (1 << 16) - 1;
    explicit Paraphrases(const std::filesystem::path &path);
    std::optional<std::uint16_t> word(std::string_view text) const {
        const auto number = words_.find(text);
        return number ? std::optional(static_cast<std::uint16_t>(*number)) : std::nullopt;
    }
    std::uint32_t step(std::uint32_t node, std::uint16_t word) const;
    // [length, words …] of every paraphrase of the phrase that ends in this node
    std::span<const std::uint16_t> targets(std::uint32_t node) const {
        return targets_.subspan(target_starts_[node], target_starts_[node + 1] - target_starts_[node]);
    }
    const std::string &source() const { return file_.source(); }

private:
    void check_trie() const;
    void check_targets() const;
    IndexFile file_;
    StringTable words_;
    std::span<const std::uint16_t> labels_, targets_;
    std::span<const std::uint32_t> child_starts_, target_starts_;
};

// The index in this file; of the file opened last what was read is kept, as long as the file stays the same, so that opening
// it again costs nothing.
template <class Index>
std::shared_ptr<const Index> open_index(const std::filesystem::path &path);

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
    std::unordered_map<std::string, std::uint16_t, TextHash, std::equal_to<>> vocabulary_;
    std::vector<std::string> words_;
    std::unordered_map<std::u16string, std::u16string, TextHash, std::equal_to<>> targets_;
    Interrupt interrupt_;
};

// Writes the synonym index: words and irregular forms, each with its synsets.
using SynsetLists = std::vector<std::pair<std::string, std::vector<std::uint32_t>>>;
void write_synonyms(const std::filesystem::path &path, const SynsetLists &words, const SynsetLists &irregular,
                    const std::string &source);

}  // namespace caplens::meteor

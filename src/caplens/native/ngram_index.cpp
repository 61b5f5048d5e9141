#include <algorithm>

#include "document_frequency.h"

namespace caplens {

constexpr std::size_t kAhead = 16;  // so many are on their way from memory

NgramIndex::NgramIndex(std::shared_ptr<const References> references, Id least) : references_(std::move(references)) {
    Interrupt interrupt;
    DocumentFrequencies counted = count_documents(*references_, least, interrupt);
    nb::gil_scoped_release released;
    word_frequencies_ = std::move(counted.words);
    grams_.clear(counted.keys.size(), static_cast<Id>(word_frequencies_.size()));
    for (std::size_t gram = 0; gram < counted.keys.size(); ++gram) {
        if (gram + kAhead < counted.keys.size()) grams_.prefetch(counted.keys[gram + kAhead]);
        grams_.intern(counted.keys[gram]).frequency = counted.grams[gram];
        interrupt.after(50);
    }
    rank_frequencies();
}

NgramIndex::NgramIndex(std::shared_ptr<const References> references, const FrequencyTable& table)
    : references_(std::move(references)), table_words_(std::make_unique<Vocabulary>()) {
    Interrupt interrupt;
    for (Id word = 0; word < references_->vocabulary().size(); ++word) {
        table_words_->intern(references_->vocabulary().word(word));
        interrupt.after(50);
    }
    if (table.prefixes.size() != table.lasts.size() ||
        table.frequencies.size() != table.words.size() + table.lasts.size())
        throw nb::value_error("a damaged table: its parts differ in length");
    std::vector<Id> ids;  // of the table's entries
    ids.reserve(table.frequencies.size());
    for (const std::string& word : table.words) {
        ids.push_back(table_words_->intern(word));
        interrupt.after(50);
    }
    word_frequencies_.assign(table_words_->size(), 0);
    for (std::size_t word = 0; word < ids.size(); ++word) word_frequencies_[ids[word]] = table.frequencies[word];
    grams_.clear(table.lasts.size(), static_cast<Id>(word_frequencies_.size()));
    for (std::size_t entry = 0; entry < table.lasts.size(); ++entry) {
        if (const std::size_t next = entry + kAhead;
            next < table.lasts.size() && table.prefixes[next] < ids.size() && table.lasts[next] < ids.size())
            grams_.prefetch(gram_key(ids[table.prefixes[next]], ids[table.lasts[next]]));
        const Id prefix = table.prefixes[entry], last = table.lasts[entry];
        if (prefix >= ids.size() || last >= table.words.size()) throw nb::value_error("a damaged table: it names no such word");
        Gram& gram = grams_.intern(gram_key(ids[prefix], ids[last]));
        gram.frequency = table.frequencies[ids.size()];
        ids.push_back(gram.id);
        interrupt.after(50);
    }
    rank_frequencies();
}

// There are few different frequencies: their places in a list name them, so that one idf is needed for each.
void NgramIndex::rank_frequencies() {
    std::vector<Id> ranks(1 << 16, kNone);
    const auto note = [&](Id frequency) {
        if (frequency >= ranks.size())
            frequencies_.push_back(frequency);
        else
            ranks[frequency] = 0;
    };
    for (const Id frequency : word_frequencies_) note(frequency);
    grams_.each([&](std::uint64_t, const Gram& gram) { note(gram.frequency); });
    for (Id frequency = 0; frequency < ranks.size(); ++frequency)
        if (ranks[frequency] != kNone) frequencies_.push_back(frequency);
    std::sort(frequencies_.begin(), frequencies_.end());
    frequencies_.erase(std::unique(frequencies_.begin(), frequencies_.end()), frequencies_.end());
    frequencies_.shrink_to_fit();
    for (std::size_t rank = 0; rank < frequencies_.size() && frequencies_[rank] < ranks.size(); ++rank)
        ranks[frequencies_[rank]] = static_cast<Id>(rank);
    const auto rank = [&](Id frequency) {
        if (frequency < ranks.size()) return ranks[frequency];
        return static_cast<Id>(std::lower_bound(frequencies_.begin(), frequencies_.end(), frequency) - frequencies_.begin());
    };
    for (Id& frequency : word_frequencies_) frequency = rank(frequency);
    grams_.each([&](std::uint64_t, Gram& gram) { gram.frequency = rank(gram.frequency); });
}

std::vector<Id> NgramIndex::document_frequency() const {
    std::vector<Id> result(size());
    for (std::size_t word = 0; word < word_frequencies_.size(); ++word) result[word] = frequencies_[word_frequencies_[word]];
    grams_.each([&](std::uint64_t, const Gram& gram) { result[gram.id] = frequencies_[gram.frequency]; });
    return result;
}

std::vector<std::uint64_t> NgramIndex::keys() const {
    std::vector<std::uint64_t> keys(size() - word_frequencies_.size());
    grams_.each([&](std::uint64_t key, const Gram& gram) { keys[gram.id - word_frequencies_.size()] = key; });
    return keys;
}

}  // namespace caplens

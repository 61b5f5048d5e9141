// Writing the indexes from METEOR's text files.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "meteor_data.h"
#include "meteor_text.h"

namespace caplens::meteor {

namespace {

// A place in a section; places are stored in 32 bits.
std::uint32_t offset(std::size_t place) {
    if (place > std::numeric_limits<std::uint32_t>::max())
        throw std::runtime_error("a part of the index would have more than 4,294,967,295 entries");
    return static_cast<std::uint32_t>(place);
}

class SectionWriter {
public:
    SectionWriter(std::string_view kind, const std::string &source) {
        if (source.size() > header_.source.size() || !is_plain_name(source))
            throw std::invalid_argument("the source of an index is named by up to 64 printable characters");
        std::copy(kind.begin(), kind.end(), header_.kind.begin());
        std::copy(source.begin(), source.end(), header_.source.begin());
    }

    template <class T>
    void section(const std::vector<T> &values) {
        const std::uint64_t count = values.size();
        put(&count, sizeof count);
        put(values.data(), count * sizeof(T));
        content_.resize(padded(content_.size()));
    }

    void strings(const std::vector<std::string> &keys) {
        std::vector<std::uint32_t> slots(std::bit_ceil(keys.size() * 2 + 2), 0), offsets{0};
        std::vector<char> text;
        for (std::size_t index = 0; index < keys.size(); ++index) {
            std::size_t slot = slot_hash(keys[index]) & (slots.size() - 1);
            while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
            slots[slot] = static_cast<std::uint32_t>(index + 1);
            text.insert(text.end(), keys[index].begin(), keys[index].end());
            offsets.push_back(offset(text.size()));
        }
        section(slots);
        section(offsets);
        section(text);
    }

    void write(const std::filesystem::path &path) {
        header_.size = sizeof header_ + content_.size();
        if (header_.size > largest_index) throw std::runtime_error("the index would be larger than 4 GB");
        header_.checksum = checksum(header_, content_);
        errno = 0;
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file.write(reinterpret_cast<const char *>(&header_), sizeof header_);
        file.write(reinterpret_cast<const char *>(content_.data()), static_cast<std::streamsize>(content_.size()));
        file.close();
        if (!file)
            throw std::filesystem::filesystem_error("cannot write", path, {errno ? errno : EIO, std::generic_category()});
    }

private:
    void put(const void *data, std::size_t size) {
        const auto *bytes = static_cast<const std::byte *>(data);
        content_.insert(content_.end(), bytes, bytes + size);
    }
    Header header_{};
    std::vector<std::byte> content_;  // all behind the header
};

void write_lists(SectionWriter &out, const SynsetLists &lists) {
    std::vector<std::string> keys;
    std::vector<std::uint32_t> starts{0}, sets;
    for (const auto &[key, values] : lists) {
        keys.push_back(key);
        sets.insert(sets.end(), values.begin(), values.end());
        starts.push_back(offset(sets.size()));
    }
    out.strings(keys);
    out.section(starts);
    out.section(sets);
}

}  // namespace

void write_synonyms(const std::filesystem::path &path, const SynsetLists &words, const SynsetLists &irregular,
                    const std::string &source) {
    SectionWriter out(synonym_kind, source);
    write_lists(out, words);
    write_lists(out, irregular);
    out.write(path);
}

std::uint16_t ParaphraseBuilder::word(std::string_view text) {
    const auto known = vocabulary_.find(text);
    if (known != vocabulary_.end()) return known->second;
    if (words_.size() == Paraphrases::most_words)
        throw std::runtime_error("the paraphrase table has more than 65,536 different words");
    const auto number = static_cast<std::uint16_t>(words_.size());
    words_.emplace_back(text);
    vocabulary_.emplace(text, number);
    return number;
}

void ParaphraseBuilder::line(std::string_view text) {
    std::size_t part = lines_++ % 3;
    interrupt_.after(100 + 10 * text.size());
    if (part == 0) return;  // the probability, which METEOR does not use
    std::u16string phrase;
    for (std::string_view one : split_words(text)) phrase += static_cast<char16_t>(word(one));
    const auto refuse = [&](const char *why) {
        throw std::runtime_error("line " + std::to_string(lines_) + " of the paraphrase table " + why);
    };
    if (phrase.empty()) refuse("is empty");
    if (phrase.size() > Paraphrases::longest_phrase) refuse("has more than 65,535 words");
    if (part == 1) {
        phrase_ = std::move(phrase);
    } else {
        std::u16string &targets = targets_[phrase_];
        targets += static_cast<char16_t>(phrase.size());
        targets += phrase;
    }
}

void ParaphraseBuilder::feed(std::string_view chunk) {
    while (!chunk.empty()) {
        std::size_t end = chunk.find('\n');
        if (end == std::string_view::npos) {
            partial_ += chunk;
            return;
        }
        if (partial_.empty()) {
            line(chunk.substr(0, end));
        } else {
            partial_ += chunk.substr(0, end);
            line(partial_);
            partial_.clear();
        }
        chunk.remove_prefix(end + 1);
    }
}

void ParaphraseBuilder::write(const std::filesystem::path &path, const std::string &source) {
    if (!partial_.empty()) {
        std::string last = std::move(partial_);
        line(last);
    }
    if (lines_ == 0 || lines_ % 3 != 0) throw std::runtime_error("the paraphrase table is cut short");

    using Entry = std::pair<const std::u16string, std::u16string>;
    std::vector<const Entry *> sorted;
    for (const Entry &entry : targets_) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [this](const Entry *a, const Entry *b) {
        interrupt_.after(50);
        return a->first < b->first;
    });

    // Breadth first, so that a node's children lie side by side: node k is the range of phrases with one prefix.
    struct Range {
        std::size_t begin, end, depth;
    };
    std::vector<Range> nodes{{0, sorted.size(), 0}};
    std::vector<std::uint16_t> labels{0}, targets;
    std::vector<std::uint32_t> child_starts, target_starts;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        auto [begin, end, depth] = nodes[node];
        interrupt_.after(100);
        child_starts.push_back(offset(nodes.size()));
        target_starts.push_back(offset(targets.size()));
        if (begin < end && sorted[begin]->first.size() == depth) {
            for (char16_t unit : sorted[begin]->second) targets.push_back(unit);
            ++begin;
        }
        while (begin < end) {
            char16_t label = sorted[begin]->first[depth];
            std::size_t next = begin;
            while (next < end && sorted[next]->first[depth] == label) ++next;
            nodes.push_back({begin, next, depth + 1});
            labels.push_back(label);
            begin = next;
        }
    }
    child_starts.push_back(offset(nodes.size()));
    target_starts.push_back(offset(targets.size()));

    SectionWriter out(paraphrase_kind, source);
    out.strings(words_);
    out.section(labels);
    out.section(child_starts);
    out.section(target_starts);
    out.section(targets);
    out.write(path);
}

}  // namespace caplens::meteor

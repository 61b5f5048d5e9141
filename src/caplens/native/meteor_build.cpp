// Writing the mapped indexes from METEOR's text files.
#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "meteor_data.h"
#include "meteor_index.h"
#include "meteor_text.h"

namespace caplens::meteor {

namespace {

class SectionWriter {
public:
    SectionWriter(const std::filesystem::path &path, std::string_view kind, const std::string &source)
        : file_(path, std::ios::binary | std::ios::trunc) {
        std::copy(kind.begin(), kind.end(), header_.kind.begin());
        std::copy_n(source.begin(), std::min(source.size(), header_.source.size()), header_.source.begin());
        put(&header_, sizeof header_);
    }

    template <class T>
    void section(const std::vector<T> &values) {
        std::uint64_t count = values.size();
        put(&count, sizeof count);
        put(values.data(), count * sizeof(T));
        static constexpr char zeros[8] = {};
        put(zeros, padded(count * sizeof(T)) - count * sizeof(T));
    }

    void strings(const std::vector<std::string> &keys) {
        std::vector<std::uint32_t> slots(std::bit_ceil(keys.size() * 2 + 2), 0), offsets{0};
        std::vector<char> text;
        for (std::size_t index = 0; index < keys.size(); ++index) {
            std::size_t slot = slot_hash(keys[index]) & (slots.size() - 1);
            while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
            slots[slot] = static_cast<std::uint32_t>(index + 1);
            text.insert(text.end(), keys[index].begin(), keys[index].end());
            offsets.push_back(static_cast<std::uint32_t>(text.size()));
        }
        section(slots);
        section(offsets);
        section(text);
    }

    void close() {
        header_.size = static_cast<std::uint64_t>(file_.tellp());
        file_.seekp(0);
        put(&header_, sizeof header_);
        file_.close();
        if (!file_) throw std::runtime_error("could not write the index (is the disk full?)");
    }

private:
    void put(const void *data, std::size_t size) { file_.write(static_cast<const char *>(data), static_cast<std::streamsize>(size)); }
    std::ofstream file_;
    Header header_{};
};

void write_lists(SectionWriter &out, const SynsetLists &lists) {
    std::vector<std::string> keys;
    std::vector<std::uint32_t> starts{0}, sets;
    for (const auto &[key, values] : lists) {
        keys.push_back(key);
        sets.insert(sets.end(), values.begin(), values.end());
        starts.push_back(static_cast<std::uint32_t>(sets.size()));
    }
    out.strings(keys);
    out.section(starts);
    out.section(sets);
}

}  // namespace

void write_synonyms(const std::filesystem::path &path, const SynsetLists &words, const SynsetLists &irregular,
                    const std::string &source) {
    SectionWriter out(path, synonym_kind, source);
    write_lists(out, words);
    write_lists(out, irregular);
    out.close();
}

std::uint16_t ParaphraseBuilder::word(std::string_view text) {
    auto [place, is_new] = vocabulary_.try_emplace(std::string(text), static_cast<std::uint16_t>(words_.size()));
    if (is_new) {
        if (words_.size() > std::numeric_limits<std::uint16_t>::max())
            throw std::runtime_error("the paraphrase table has more than 65,536 different words");
        words_.emplace_back(text);
    }
    return place->second;
}

void ParaphraseBuilder::line(std::string_view text) {
    std::size_t part = lines_++ % 3;
    if (part == 0) return;  // the probability, which METEOR does not use
    std::u16string phrase;
    for (std::string_view one : split_words(text)) phrase += static_cast<char16_t>(word(one));
    if (phrase.empty()) throw std::runtime_error("line " + std::to_string(lines_) + " of the paraphrase table is empty");
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
    std::sort(sorted.begin(), sorted.end(), [](const Entry *a, const Entry *b) { return a->first < b->first; });

    // Breadth first, so that a node's children lie side by side: node k is the range of phrases with one prefix.
    struct Range {
        std::size_t begin, end, depth;
    };
    std::vector<Range> nodes{{0, sorted.size(), 0}};
    std::vector<std::uint16_t> labels{0}, targets;
    std::vector<std::uint32_t> child_starts, target_starts;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        auto [begin, end, depth] = nodes[node];
        child_starts.push_back(static_cast<std::uint32_t>(nodes.size()));
        target_starts.push_back(static_cast<std::uint32_t>(targets.size()));
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
    child_starts.push_back(static_cast<std::uint32_t>(nodes.size()));
    target_starts.push_back(static_cast<std::uint32_t>(targets.size()));

    SectionWriter out(path, paraphrase_kind, source);
    out.strings(words_);
    out.section(labels);
    out.section(child_starts);
    out.section(target_starts);
    out.section(targets);
    out.close();
}

}  // namespace caplens::meteor

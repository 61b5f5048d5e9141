// Looking things up in METEOR's data.
#include "meteor_data.h"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>

namespace caplens::meteor {

Synonyms::Lists::Lists(SectionReader &reader) : words(reader) {
    starts = reader.next_starts(words.size());
    sets = reader.next<std::uint32_t>();
    reader.check_starts(starts, sets.size());
}

Synonyms::Synonyms(const std::filesystem::path &path) : file_(path, synonym_kind) {
    SectionReader reader(file_);
    regular_ = Lists(reader);
    irregular_ = Lists(reader);
    reader.check_end();
}

std::vector<std::uint32_t> Synonyms::synsets(std::string_view word) const {
    std::vector<std::uint32_t> all;
    const auto add = [&](std::span<const std::uint32_t> sets) { all.insert(all.end(), sets.begin(), sets.end()); };
    if (const auto own = regular_.words.find(word)) add(regular_.of(*own));
    if (const auto form = irregular_.words.find(word)) {
        add(irregular_.of(*form));
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
            const auto base = regular_.words.find(candidate);
            if (base) add(regular_.of(*base));
            return base.has_value();
        };
        (void)std::any_of(rules.begin(), rules.end(), attempt);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

Paraphrases::Paraphrases(const std::filesystem::path &path) : file_(path, paraphrase_kind) {
    SectionReader reader(file_);
    words_ = StringTable(reader);
    file_.require(words_.size() <= most_words);
    labels_ = reader.next<std::uint16_t>();
    child_starts_ = reader.next<std::uint32_t>();
    target_starts_ = reader.next_starts(labels_.size());
    targets_ = reader.next<std::uint16_t>();
    reader.check_starts(target_starts_, targets_.size());
    reader.check_end();
    check_trie();
    check_targets();
}

// Children stand together, behind their parent, by label.
void Paraphrases::check_trie() const {
    const std::size_t nodes = labels_.size();
    file_.require(nodes > 0 && child_starts_.size() == nodes + 1 && child_starts_.front() == 1 && child_starts_.back() == nodes);
    bool is_sound = true;
    for (std::size_t node = 0; node < nodes; ++node)
        is_sound &= child_starts_[node] > node && child_starts_[node] <= child_starts_[node + 1];
    file_.require(is_sound);
    for (std::size_t node = 0; node < nodes; ++node)
        for (std::size_t child = child_starts_[node] + 1; child < child_starts_[node + 1]; ++child)
            is_sound &= labels_[child - 1] < labels_[child];
    file_.require(is_sound);
}

void Paraphrases::check_targets() const {
    const std::size_t words = words_.size();
    for (std::size_t node = 0; node < labels_.size(); ++node) {
        const auto targets = this->targets(static_cast<std::uint32_t>(node));
        for (std::size_t at = 0; at < targets.size();) {
            const std::size_t end = at + 1 + targets[at];
            bool is_sound = targets[at] > 0 && end <= targets.size();
            file_.require(is_sound);
            for (++at; at < end; ++at) is_sound &= targets[at] < words;
            file_.require(is_sound);
        }
    }
}

std::uint32_t Paraphrases::step(std::uint32_t node, std::uint16_t word) const {
    auto first = labels_.begin() + child_starts_[node], last = labels_.begin() + child_starts_[node + 1];
    auto child = std::lower_bound(first, last, word);
    return child != last && *child == word ? static_cast<std::uint32_t>(child - labels_.begin()) : nowhere;
}

template <class Index>
std::shared_ptr<const Index> open_index(const std::filesystem::path &path) {
    struct Opened {
        std::filesystem::path path;
        std::uintmax_t size = 0;
        std::filesystem::file_time_type changed;
        bool operator==(const Opened &) const = default;
    };
    static std::mutex mutex;
    static Opened kept;
    static std::shared_ptr<const Index> index;
    const std::lock_guard lock(mutex);
    std::error_code absent;  // of a file that is not there, or is none, the index itself complains
    const Opened wanted{std::filesystem::absolute(path), std::filesystem::file_size(path, absent),
                        std::filesystem::last_write_time(path, absent)};
    if (!index || absent || kept != wanted) {
        index = std::make_shared<const Index>(path);
        kept = wanted;
    }
    return index;
}

template std::shared_ptr<const Synonyms> open_index(const std::filesystem::path &path);
template std::shared_ptr<const Paraphrases> open_index(const std::filesystem::path &path);

}  // namespace caplens::meteor

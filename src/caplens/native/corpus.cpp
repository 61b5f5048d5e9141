#include "corpus.h"

#include <cmath>

namespace caplens {

namespace {

void check_signals(std::size_t count) {
    if (count % 65536 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

References::References(nb::iterable groups, nb::object tokenizer) : tokenizer_(std::move(tokenizer)) {
    TextSet texts;
    for (nb::handle group : groups) {
        for (nb::handle text : group) members_.push_back(texts.add(text));
        ends_.push_back(members_.size());
        check_signals(ends_.size());
    }
    tokens_.tokenize(texts, tokenizer_, vocabulary_);
}

NgramIndex::NgramIndex(std::shared_ptr<const References> references, const FrequencyTable* table)
    : references_(std::move(references)) {
    if (table != nullptr) {
        table_words_ = std::make_unique<Vocabulary>();
        for (Id word = 0; word < references_->vocabulary().size(); ++word)
            table_words_->intern(references_->vocabulary().word(word));
        for (const std::string& word : table->words) table_ids_.push_back(table_words_->intern(word));
    }
    // Captions have about as many distinct n-grams as words.
    const Tokens& tokens = references_->tokens();
    grams_.start_at(vocabulary().size(), tokens.total() + (table == nullptr ? 0 : 2 * table->lasts.size()));
    ids_.reserve(kLongest * tokens.total());
    if (table != nullptr) {
        for (std::size_t entry = 0; entry < table->lasts.size(); ++entry) {
            const Id prefix = table->prefixes[entry], last = table->lasts[entry];
            if (prefix >= table_ids_.size() || last >= table->words.size()) throw nb::value_error("damaged table");
            table_ids_.push_back(grams_.intern(gram_key(table_ids_[prefix], table_ids_[last])));
        }
    }
    std::vector<std::uint64_t> scratch;
    for_each_row(tokens.size(), [&](std::size_t text) { add_text(tokens.words(static_cast<Id>(text)), scratch); });
    ids_.shrink_to_fit();
}

void NgramIndex::add_text(std::span<const Id> words, std::vector<std::uint64_t>& scratch) {
    const auto starts = level_starts(words.size());
    const std::size_t base = ids_.size();
    ids_.resize(base + starts[kLongest]);
    std::copy(words.begin(), words.end(), ids_.begin() + static_cast<std::ptrdiff_t>(base));
    for (std::size_t n = 2; n <= kLongest; ++n) {
        const Id* prefixes = ids_.data() + base + starts[n - 2];
        Id* out = ids_.data() + base + starts[n - 1];
        const std::size_t count = starts[n] - starts[n - 1];
        // All keys of a level are known before the first is looked up, so the memory can be fetched ahead.
        for (std::size_t at = 0; at < count; ++at) grams_.prefetch(gram_key(prefixes[at], words[at + n - 1]));
        for (std::size_t at = 0; at < count; ++at) out[at] = grams_.intern(gram_key(prefixes[at], words[at + n - 1]));
    }
    for (std::size_t n = 0; n < kLongest; ++n)
        group_equal({ids_.data() + base + starts[n], starts[n + 1] - starts[n]}, scratch);
    ends_.push_back(ids_.size());
}

std::vector<Id> NgramIndex::document_frequency() const {
    struct Entry {
        Id frequency = 0, last_group = 0;
    };
    std::vector<Entry> entries(size());
    for_each_row(references_->groups(), [&](std::size_t group) {
        const Id stamp = static_cast<Id>(group) + 1;
        for (const Id text : references_->texts(group)) {
            const std::span<const Id> grams = ids(text);
            for (const Id id : grams) __builtin_prefetch(&entries[id], 1);
            for (const Id id : grams) {
                Entry& entry = entries[id];
                entry.frequency += entry.last_group != stamp;
                entry.last_group = stamp;
            }
        }
    });
    std::vector<Id> frequencies(size());
    for (Id id = 0; id < size(); ++id) frequencies[id] = entries[id].frequency;
    return frequencies;
}

TfIdf::TfIdf(std::shared_ptr<const NgramIndex> index, std::span<const double> idf, double unseen)
    : index_(std::move(index)), unseen_(unseen) {
    keep_weights(idf);
    work_out_norms(idf);
}

// Most n-grams occur with one image only and weigh what unknown ones weigh: a table without them is fast to search.
void TfIdf::keep_weights(std::span<const double> idf) {
    const std::vector<std::uint64_t> keys = index_->keys();
    const Id words = index_->vocabulary().size();
    std::vector<Id> renamed(index_->size(), kNone);
    std::size_t kept = 0;
    for (std::size_t id = idf.size(); id-- > words;) {
        if (idf[id] == unseen_ && renamed[id] == kNone) continue;
        renamed[id] = renamed[keys[id - words] >> 32] = 0;  // to get a name below, as its first words must
        ++kept;
    }
    grams_.start_at(words, 2 * kept);
    weights_.assign(idf.begin(), idf.begin() + words);
    for (Id word = 0; word < words; ++word) renamed[word] = word;
    for (std::size_t id = words; id < idf.size(); ++id) {
        if (renamed[id] == kNone) continue;
        const std::uint64_t key = keys[id - words];
        renamed[id] = grams_.intern(gram_key(renamed[key >> 32], static_cast<Id>(key)));
        weights_.push_back(idf[id]);
    }
}

void TfIdf::work_out_norms(std::span<const double> idf) {
    const Tokens& tokens = index_->references().tokens();
    norms_.resize(tokens.size());
    for_each_row(tokens.size(), [&](std::size_t row) {
        const Id text = static_cast<Id>(row);
        const std::span<const Id> ids = index_->ids(text);
        for (const Id id : ids) __builtin_prefetch(&idf[id]);
        const auto starts = level_starts(tokens.words(text).size());
        for (std::size_t n = 0; n < kLongest; ++n) {
            double squares = 0.0;
            for (std::size_t at = starts[n], next; at < starts[n + 1]; at = next) {
                next = at + 1;
                while (next < starts[n + 1] && ids[next] == ids[at]) ++next;
                const double value = static_cast<double>(next - at) * idf[ids[at]];
                squares += value * value;
            }
            norms_[row][n] = std::sqrt(squares);
        }
    });
}

WordRuns::WordRuns(std::shared_ptr<const References> references, bool whole_tokens)
    : references_(std::move(references)), whole_tokens_(whole_tokens) {
    const Vocabulary& tokens = references_->vocabulary();
    for (Id token = 0; token < tokens.size(); ++token) {
        each(tokens.word(token), [&](std::string_view run) { ids_.push_back(vocabulary_.intern(run)); });
        ends_.push_back(ids_.size());
        only_.push_back(in_token(token).size() == 1 ? ids_.back() : kNone);
    }
}

TokenMap::TokenMap(std::shared_ptr<const References> references, nb::iterable words)
    : references_(std::move(references)), vocabulary_(std::make_shared<Vocabulary>(&references_->vocabulary())) {
    for (nb::handle word : words) ids_.push_back(vocabulary_->intern(nb::cast<std::string>(word)));
    vocabulary_->intern("");  // an empty caption is one empty token to ROUGE; from here on the vocabulary is only read
}

Candidates::Candidates(std::shared_ptr<const References> references, nb::iterable texts, std::vector<std::size_t> groups)
    : references_(std::move(references)),
      vocabulary_(std::make_shared<Vocabulary>(&references_->vocabulary())),
      groups_(std::move(groups)) {
    TextSet distinct;
    for (nb::handle text : texts) {
        texts_.push_back(distinct.add(text));
        check_signals(texts_.size());
    }
    check_groups();
    tokens_.tokenize(distinct, references_->tokenizer(), *vocabulary_);
}

Candidates::Candidates(const TokenMap& map, std::span<const std::int64_t> ids, std::span<const std::int64_t> lengths,
                       std::vector<std::size_t> groups)
    : references_(map.references()), vocabulary_(map.vocabulary()), groups_(std::move(groups)) {
    std::vector<Id> words;
    std::size_t at = 0;
    for (const std::int64_t length : lengths) {
        words.clear();
        if (length < 0 || static_cast<std::size_t>(length) > ids.size() - at) throw nb::value_error("lengths exceed ids");
        for (const std::size_t end = at + static_cast<std::size_t>(length); at < end; ++at) {
            if (ids[at] < 0 || static_cast<std::size_t>(ids[at]) >= map.ids().size())
                throw nb::index_error("a token id is outside the vocabulary");
            words.push_back(map.ids()[static_cast<std::size_t>(ids[at])]);
        }
        texts_.push_back(static_cast<Id>(texts_.size()));
        tokens_.append(words, *vocabulary_);
    }
    check_groups();
}

void Candidates::check_groups() const {
    if (groups_.size() != texts_.size()) throw nb::value_error("one group of references per candidate is needed");
    for (const std::size_t group : groups_)
        if (group >= references_->groups()) throw nb::index_error("a group of references that does not exist");
}

std::vector<std::int64_t> Candidates::pair_starts() const {
    std::vector<std::int64_t> starts(size() + 1, 0);
    for (std::size_t row = 0; row < size(); ++row)
        starts[row + 1] = starts[row] + static_cast<std::int64_t>(texts(row).size());
    return starts;
}

}  // namespace caplens

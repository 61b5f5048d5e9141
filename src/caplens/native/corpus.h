// References and candidates as numbers, and the loops of the n-gram metrics over them.
#pragma once

#include <array>
#include <memory>

#include "ngrams.h"

namespace caplens {

// The references of every image, tokenized once; never changes after it was made, so threads may share it.
class References {
public:
    References(nb::iterable groups, nb::object tokenizer);

    std::size_t groups() const { return ends_.size(); }
    std::span<const Id> texts(std::size_t group) const {
        const std::size_t start = group == 0 ? 0 : ends_[group - 1];
        return {members_.data() + start, ends_[group] - start};
    }
    const Tokens& tokens() const { return tokens_; }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }

private:
    Tokenizer tokenizer_;
    Vocabulary vocabulary_;
    Tokens tokens_;
    std::vector<Id> members_;        // text ids, group after group
    std::vector<std::size_t> ends_;  // where each group ends
};

// A document-frequency table from elsewhere: words, then n-grams as (index of prefix, index of last word), and how many
// documents have each.
struct FrequencyTable {
    std::vector<std::string> words;
    std::span<const Id> prefixes, lasts, frequencies;
};

// Words and n-grams with their document frequencies, each with an id, words first: those of a table, or those of the
// references that stand in at least so many groups. N-grams of one group weigh what unknown ones weigh.
class NgramIndex {
public:
    NgramIndex(std::shared_ptr<const References> references, Id least);
    NgramIndex(std::shared_ptr<const References> references, const FrequencyTable& table);

    const References& references() const { return *references_; }
    const Vocabulary& vocabulary() const { return table_words_ ? *table_words_ : references_->vocabulary(); }
    Id size() const { return grams_.end(); }
    // The n-gram of this gram_key(); what it has for a frequency is a place among frequencies().
    Gram find(std::uint64_t key) const { return grams_.find(key); }
    [[gnu::always_inline]] void prefetch(std::uint64_t key) const { grams_.prefetch(key); }
    Id word_frequency(Id word) const { return word_frequencies_[word]; }
    // The different frequencies, ascending.
    const std::vector<Id>& frequencies() const { return frequencies_; }
    // By id.
    std::vector<Id> document_frequency() const;
    std::vector<std::uint64_t> keys() const;

private:
    void rank_frequencies();

    std::shared_ptr<const References> references_;
    std::unique_ptr<Vocabulary> table_words_;  // the references' words and then the table's
    GramTable grams_;
    std::vector<Id> word_frequencies_, frequencies_;
};

// A weight for every n-gram, and the norms of the references' tf-idf vectors, so that scoring need not weigh them again.
class TfIdf {
public:
    // `idf` of each of the index's frequencies, and of n-grams that the index does not know.
    TfIdf(std::shared_ptr<const NgramIndex> index, std::span<const double> idf, double unseen);

    const NgramIndex& index() const { return *index_; }
    // The n-gram of this gram_key(); it has no id if it weighs what unknown n-grams weigh, as do all that begin with it.
    Gram find(std::uint64_t key) const { return has_local(key) ? Gram{} : index_->find(key); }
    [[gnu::always_inline]] void prefetch(std::uint64_t key) const {
        if (!has_local(key)) index_->prefetch(key);
    }
    double weight(Gram gram) const { return gram.id == kNone ? unseen_ : idf_[gram.frequency]; }
    double word_weight(Id word) const { return word & kLocal ? unseen_ : idf_[index_->word_frequency(word)]; }
    // Of a reference, one for each n.
    const std::array<double, kLongest>& norms(Id text) const { return norms_[text]; }
    // Whether no n-gram of the references or the table weighs more than nothing.
    bool all_zero() const { return all_zero_; }

private:
    static bool has_local(std::uint64_t key) { return (key & gram_key(kLocal, kLocal)) != 0; }

    std::shared_ptr<const NgramIndex> index_;
    std::vector<double> idf_;
    double unseen_;
    LargeVector<std::array<double, kLongest>> norms_;
    bool all_zero_ = true;
};

// What \w stands for in Python's regular expressions: letters and digits of any script, and the underscore.
inline bool is_word_character(std::uint32_t code) { return code == '_' || Py_UNICODE_ISALNUM(code); }

// The words that CIDEr-R's repetition penalty counts: whole tokens, or what the regular expression \w+ finds in them.
class WordRuns {
public:
    WordRuns(std::shared_ptr<const References> references, bool whole_tokens);
    template <class Visit>
    void each(std::string_view token, Visit visit) const {
        if (whole_tokens_)
            visit(token);
        else
            each_run(token, is_word_character, visit);
    }
    std::span<const Id> in_token(Id token) const {  // that the references know
        const std::size_t start = token == 0 ? 0 : ends_[token - 1];
        return {ids_.data() + start, ends_[token] - start};
    }
    // Visits the runs of a token that the references know; nearly every token is one run.
    template <class Visit>
    void each_in_token(Id token, Visit visit) const {
        if (const Id only = only_[token]; only != kNone) return visit(only);
        for (const Id run : in_token(token)) visit(run);
    }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    const References& references() const { return *references_; }

private:
    std::shared_ptr<const References> references_;
    bool whole_tokens_;
    Vocabulary vocabulary_;
    std::vector<Id> ids_;
    std::vector<std::size_t> ends_;  // of tokens
    std::vector<Id> only_;           // the run of a token that is one run, else kNone
};

// What the numbers of somebody's token vocabulary mean, so that captions can come as numbers.
class TokenMap {
public:
    TokenMap(std::shared_ptr<const References> references, nb::iterable words);
    const std::shared_ptr<const References>& references() const { return references_; }
    const std::shared_ptr<Vocabulary>& vocabulary() const { return vocabulary_; }
    std::span<const Id> ids() const { return ids_; }

private:
    std::shared_ptr<const References> references_;
    std::shared_ptr<Vocabulary> vocabulary_;
    std::vector<Id> ids_;
};

// Captions to judge, each against one group of references.
class Candidates {
public:
    Candidates(std::shared_ptr<const References> references, nb::iterable texts, std::span<const std::int64_t> groups);
    // Captions as numbers, row after row.
    Candidates(const TokenMap& words, std::span<const std::int64_t> ids, std::span<const std::int64_t> lengths,
               std::span<const std::int64_t> groups);

    // Some of these captions, one after the other; they share the tokens.
    Candidates rows(std::size_t begin, std::size_t end) const;

    std::size_t size() const { return texts_.size(); }
    std::span<const Id> words(std::size_t row) const { return tokens_->words(texts_[row]); }
    std::span<const Id> pieces(std::size_t row) const { return tokens_->pieces(texts_[row]); }
    std::span<const Id> texts(std::size_t row) const { return references_->texts(groups_[row]); }
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    const References& references() const { return *references_; }
    // Where each row's pairs (candidate, reference) begin when all pairs stand in one line; one more entry than rows.
    std::vector<std::int64_t> pair_starts() const;

private:
    Candidates() = default;
    void set_groups(std::span<const std::int64_t> groups);

    std::shared_ptr<const References> references_;
    std::shared_ptr<Vocabulary> vocabulary_;  // the words that no reference has, on top of the references'
    std::shared_ptr<const Tokens> tokens_;
    std::vector<Id> texts_, groups_;
};

// Per row: words, words of the reference closest in length, n-grams for n = 1..4, matched n-grams for n = 1..4.
constexpr std::size_t kBleuColumns = 2 + 2 * kLongest;
void bleu_counts(const Candidates& candidates, double* rows);

// Per pair: length of the longest common subsequence, tokens of the candidate, tokens of the reference.
void common_subsequences(const Candidates& candidates, std::int64_t* triples);

// Per row and n: the cosines of the tf-idf vectors with each reference, times the pair's penalty, added up; with the
// candidate's weights clipped at the reference's if asked.
void consensus(const Candidates& candidates, const TfIdf& weights, bool clip, std::span<const double> penalties, double* out);

// Per pair: sum of log f(w) over the candidate's distinct words (CIDEr-R eq. 6); per row: distinct words, all words.
void repetitions(const Candidates& candidates, const WordRuns& runs, double* log_sums, std::int64_t* distinct,
                 std::int64_t* total);

}  // namespace caplens

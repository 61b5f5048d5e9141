// References and candidates as numbers, and the loops of the n-gram metrics over them.
#pragma once

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

// A document-frequency table from elsewhere: words, then n-grams as (index of prefix, index of last word).
struct FrequencyTable {
    std::vector<std::string> words;
    std::span<const Id> prefixes, lasts;
};

// All n-grams of the references (and of a table, if one is given), each with an id: words first, then longer ones.
class NgramIndex {
public:
    explicit NgramIndex(std::shared_ptr<const References> references, const FrequencyTable* table = nullptr);

    const References& references() const { return *references_; }
    const Vocabulary& vocabulary() const { return table_words_ ? *table_words_ : references_->vocabulary(); }
    Id size() const { return grams_.end(); }
    std::vector<std::uint64_t> keys() const { return grams_.keys(); }
    std::span<const Id> ids(Id text) const {
        const std::size_t start = text == 0 ? 0 : ends_[text - 1];
        return {ids_.data() + start, ends_[text] - start};
    }
    // In how many groups each n-gram occurs.
    std::vector<Id> document_frequency() const;
    // The ids of the table's words.
    const std::vector<Id>& table_ids() const { return table_ids_; }


private:
    void add_text(std::span<const Id> words, std::vector<std::uint64_t>& scratch);

    std::shared_ptr<const References> references_;
    std::unique_ptr<Vocabulary> table_words_;  // the references' words and then the table's
    std::vector<Id> table_ids_;
    GramTable grams_;
    std::vector<Id> ids_;
    std::vector<std::size_t> ends_;
};

// A weight for every n-gram, and the norms of the references' tf-idf vectors, so that scoring need not weigh them again.
class TfIdf {
public:
    TfIdf(std::shared_ptr<const NgramIndex> index, std::span<const double> idf, double unseen);

    const NgramIndex& index() const { return *index_; }
    // The n-gram of this gram_key(), or kNone if it weighs what unknown n-grams weigh, as do all that begin with it.
    Id find(std::uint64_t key) const { return has_local(key) ? kNone : grams_.find(key); }
    void prefetch(std::uint64_t key) const {
        if (!has_local(key)) grams_.prefetch(key);
    }
    double weight(Id gram) const { return gram & kLocal ? unseen_ : weights_[gram]; }
    // Of a reference, one for each n.
    const std::array<double, kLongest>& norms(Id text) const { return norms_[text]; }
    void prefetch_weight(Id gram) const {
        if ((gram & kLocal) == 0) __builtin_prefetch(&weights_[gram]);
    }

private:
    static bool has_local(std::uint64_t key) { return (key & gram_key(kLocal, kLocal)) != 0; }
    void keep_weights(std::span<const double> idf);
    void work_out_norms(std::span<const double> idf);

    std::shared_ptr<const NgramIndex> index_;
    double unseen_;  // of n-grams that the index does not know
    GramTable grams_;
    LargeVector<double> weights_;
    LargeVector<std::array<double, kLongest>> norms_;
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
    Candidates(std::shared_ptr<const References> references, nb::iterable texts, std::vector<std::size_t> groups);
    // Captions as numbers, row after row.
    Candidates(const TokenMap& words, std::span<const std::int64_t> ids, std::span<const std::int64_t> lengths,
               std::vector<std::size_t> groups);

    std::size_t size() const { return texts_.size(); }
    std::span<const Id> words(std::size_t row) const { return tokens_.words(texts_[row]); }
    std::span<const Id> pieces(std::size_t row) const { return tokens_.pieces(texts_[row]); }
    std::span<const Id> texts(std::size_t row) const { return references_->texts(groups_[row]); }
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    const References& references() const { return *references_; }
    // Where each row's pairs (candidate, reference) begin when all pairs stand in one line; one more entry than rows.
    std::vector<std::int64_t> pair_starts() const;

private:
    void check_groups() const;

    std::shared_ptr<const References> references_;
    std::shared_ptr<Vocabulary> vocabulary_;  // the words that no reference has, on top of the references'
    Tokens tokens_;
    std::vector<Id> texts_;
    std::vector<std::size_t> groups_;
};

// Per row: words, words of the reference closest in length, n-grams for n = 1..4, matched n-grams for n = 1..4.
constexpr std::size_t kBleuColumns = 2 + 2 * kLongest;
void bleu_counts(const Candidates& candidates, double* rows);

// Per pair: length of the longest common subsequence, tokens of the candidate, tokens of the reference.
void common_subsequences(const Candidates& candidates, std::int64_t* triples);

// Per pair and n: the cosine of the tf-idf vectors, with the candidate's weights clipped at the reference's if asked.
void cosines(const Candidates& candidates, const TfIdf& weights, bool clip, double* out);

// Per pair: sum of log f(w) over the candidate's distinct words (CIDEr-R eq. 6); per row: distinct words, all words.
void repetitions(const Candidates& candidates, const WordRuns& runs, double* log_sums, std::int64_t* distinct,
                 std::int64_t* total);

}  // namespace caplens

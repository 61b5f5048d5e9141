// METEOR's matchers and aligner: which words of a caption stand for which words of a reference.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "meteor_data.h"

namespace caplens::meteor {

enum Module : std::uint8_t { exact, stemmed, synonym, paraphrase, module_count };

// Words [start, start + length) of the reference against words [other, other + other_length) of the caption.
struct Match {
    std::int32_t start, other;
    std::int32_t length, other_length;
    Module module;
};

// What the matchers have to know about a word.
struct Word {
    std::uint32_t number;        // in the lexicon
    std::int32_t key, stem_key;  // Java hashes of the word and of its stem
    std::int32_t paraphrase_word = -1;
    std::uint64_t synset_bits = 0;                         // one bit per synset, to rule most pairs out at once
    std::uint32_t paraphrase_node = Paraphrases::nowhere;  // of the phrase that is this word alone
    bool is_function = false;
};

struct Sentence {
    std::vector<Word> words;
    struct Phrase {
        std::int32_t start, length;
        std::uint32_t node;
    };
    std::vector<Phrase> phrases;  // those with paraphrases, by start, then by length
    std::int32_t function_words = 0;
    std::size_t size() const { return words.size(); }
};

// Stems of another language's words; what is not among them is its own stem.
using Stems = std::unordered_map<std::string, std::string, TextHash, std::equal_to<>>;

// Every word met so far, looked up in the data once; without stems given, they are English ones.
class Lexicon {
public:
    Lexicon(const std::vector<std::string> &function_words, const Synonyms *synonyms, const Paraphrases *paraphrases,
            Interrupt &interrupt, const Stems *stems = nullptr);
    Sentence read(std::string_view line);
    const std::vector<std::uint32_t> &synsets(const Word &word) const { return synsets_[word.number]; }
    const Paraphrases *paraphrases() const { return paraphrases_; }

private:
    const Word &look_up(std::string_view text);
    std::u16string stem_of(std::string_view text, std::u16string units) const;
    const Synonyms *synonyms_;
    const Paraphrases *paraphrases_;
    const Stems *stems_;
    Interrupt &interrupt_;
    std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> numbers_;
    std::unordered_set<std::string, TextHash, std::equal_to<>> function_words_;
    std::vector<Word> words_;
    std::vector<std::vector<std::uint32_t>> synsets_;
};

// Aligns one pair of sentences after the other; not to be shared between threads.
class Aligner {
public:
    Aligner(const Lexicon &lexicon, Interrupt &interrupt);
    ~Aligner();
    // The chosen matches, by place in the reference.
    const std::vector<Match> &align(const Sentence &caption, const Sentence &reference);
    // Whether a pair is too long for the search, whose time and memory grow with the product of the lengths.
    static bool is_long(const Sentence &caption, const Sentence &reference);

private:
    struct Search;
    void find_matches(const Sentence &caption, const Sentence &reference);
    void match_words(const Sentence &caption, const Sentence &reference, bool only_exact);
    void match_paraphrases(const Sentence &from, const Sentence &to, bool from_reference);
    bool share_synset(const Word &a, const Word &b);
    void add(const Match &match);
    void fix_lonely_matches();
    template <class Bits>
    void search();
    void match_greedily(const Sentence &caption, const Sentence &reference);

    const Lexicon &lexicon_;
    Interrupt &interrupt_;
    std::vector<std::vector<Match>> matches_;  // by the place in the reference where they start
    std::vector<std::int32_t> reference_cover_, caption_cover_;
    std::vector<const Match *> fixed_;
    std::vector<std::uint64_t> present_;  // bit set of the paraphrase words in the sentence looked at
    std::vector<Match> stems_, synonyms_;
    // For pairs of the words met first, which are the frequent ones: whether they were compared, whether they share a
    // synset. Two bits side by side, four pairs a byte, one row a word.
    static constexpr std::uint32_t frequent = 2048;
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    std::unique_ptr<std::uint8_t[], Free> answers_;
    std::unique_ptr<Search> search_;
    std::vector<Match> chosen_;
};

// What METEOR 1.5 was tuned with for a language: weight of recall, exponent and weight of the penalty, weight of content
// words, and weights of the modules. Those for English ("rank"): Denkowski and Lavie 2014.
struct Parameters {
    double alpha = 0.85, beta = 0.2, gamma = 0.6, delta = 0.75;
    double module_weights[module_count] = {1.0, 0.6, 0.8, 0.6};
};

// The numbers a METEOR score is made of; sums of them give the score of a whole set.
struct Counts {
    double caption_matches = 0, reference_matches = 0;  // weighted by module and word kind
    double caption_length = 0, reference_length = 0;    // weighted by word kind
    double matched_words = 0;                           // mean of both sides
    double chunks = 0;                                  // 0 for a perfect alignment
    double score(const Parameters &parameters) const;
};

Counts count(const Sentence &caption, const Sentence &reference, const std::vector<Match> &matches,
             const Parameters &parameters = {});

}  // namespace caplens::meteor

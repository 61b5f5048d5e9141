// Words as METEOR's matchers see them.
#include "meteor_align.h"
#include "meteor_text.h"

namespace caplens::meteor {

Lexicon::Lexicon(const std::vector<std::string> &function_words, const Synonyms *synonyms, const Paraphrases *paraphrases,
                 Interrupt &interrupt, const Stems *stems)
    : synonyms_(synonyms),
      paraphrases_(paraphrases),
      stems_(stems),
      interrupt_(interrupt),
      function_words_(function_words.begin(), function_words.end()) {}

const Word &Lexicon::look_up(std::string_view text) {
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return words_[known->second];
    interrupt_.after(1000 + 50 * text.size());
    Word word{};
    word.number = static_cast<std::uint32_t>(words_.size());
    std::u16string units = to_utf16(from_utf8(text));
    word.key = java_hash(units);
    word.stem_key = java_hash(stem_of(text, std::move(units)));
    word.is_function = function_words_.contains(text);
    synsets_.emplace_back();
    if (synonyms_) {
        synsets_.back() = synonyms_->synsets(text);
        for (std::uint32_t set : synsets_.back()) word.synset_bits |= std::uint64_t{1} << (set * 0x9E3779B1u >> 26);
    }
    if (paraphrases_) {
        if (auto index = paraphrases_->word(text)) {
            word.paraphrase_word = *index;
            word.paraphrase_node = paraphrases_->step(0, *index);
        }
    }
    numbers_.emplace(std::string(text), word.number);
    words_.push_back(word);
    return words_.back();
}

std::u16string Lexicon::stem_of(std::string_view text, std::u16string units) const {
    if (!stems_) return stem(std::move(units));
    const auto known = stems_->find(text);
    return known == stems_->end() ? units : to_utf16(from_utf8(known->second));
}

Sentence Lexicon::read(std::string_view line) {
    Sentence sentence;
    for (std::string_view text : split_words(line)) {
        interrupt_.after(50);
        sentence.words.push_back(look_up(text));
        sentence.function_words += sentence.words.back().is_function;
    }
    if (!paraphrases_) return sentence;
    auto size = static_cast<std::int32_t>(sentence.size());
    for (std::int32_t start = 0; start < size; ++start) {
        std::uint32_t node = sentence.words[start].paraphrase_node;
        for (std::int32_t length = 1; node != Paraphrases::nowhere; ++length) {
            interrupt_.after(20);
            if (!paraphrases_->targets(node).empty()) sentence.phrases.push_back({start, length, node});
            if (start + length == size) break;
            std::int32_t next = sentence.words[start + length].paraphrase_word;
            node = next < 0 ? Paraphrases::nowhere : paraphrases_->step(node, static_cast<std::uint16_t>(next));
        }
    }
    return sentence;
}

}  // namespace caplens::meteor

#include "corpus.h"

namespace caplens {

References::References(nb::iterable groups, nb::object tokenizer) : tokenizer_(std::move(tokenizer)) {
    TextSet texts;
    Interrupt interrupt;
    for (nb::handle group : groups) {
        for (nb::handle text : group) {
            members_.push_back(texts.add(text));
            interrupt.after(100);
        }
        ends_.push_back(members_.size());
        interrupt.after(100);
    }
    texts.close();
    tokens_.tokenize(texts, tokenizer_, vocabulary_, interrupt);
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

Candidates::Candidates(std::shared_ptr<const References> references, nb::iterable texts, std::span<const std::int64_t> groups)
    : references_(std::move(references)), vocabulary_(std::make_shared<Vocabulary>(&references_->vocabulary())) {
    TextSet distinct;
    Interrupt interrupt;
    for (nb::handle text : texts) {
        texts_.push_back(distinct.add(text));
        interrupt.after(100);
    }
    set_groups(groups);
    distinct.close();
    Tokens tokens;
    tokens.tokenize(distinct, references_->tokenizer(), *vocabulary_, interrupt);
    tokens_ = std::make_shared<const Tokens>(std::move(tokens));
}

Candidates::Candidates(const TokenMap& map, std::span<const std::int64_t> ids, std::span<const std::int64_t> lengths,
                       std::span<const std::int64_t> groups)
    : references_(map.references()), vocabulary_(map.vocabulary()) {
    Tokens tokens;
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
        tokens.append(words, *vocabulary_);
    }
    tokens_ = std::make_shared<const Tokens>(std::move(tokens));
    set_groups(groups);
}

void Candidates::set_groups(std::span<const std::int64_t> groups) {
    if (groups.size() != texts_.size()) throw nb::value_error("one group of references per candidate is needed");
    if (references_->groups() > kNone) throw std::length_error("more than four thousand million groups of references");
    groups_.reserve(groups.size());
    for (const std::int64_t group : groups) {
        if (group < 0 || static_cast<std::size_t>(group) >= references_->groups())
            throw nb::index_error("a group of references that does not exist");
        groups_.push_back(static_cast<Id>(group));
    }
}

Candidates Candidates::rows(std::size_t begin, std::size_t end) const {
    if (begin > end || end > size()) throw nb::index_error("rows that do not exist");
    Candidates some;
    some.references_ = references_;
    some.vocabulary_ = vocabulary_;
    some.tokens_ = tokens_;
    some.texts_.assign(texts_.data() + begin, texts_.data() + end);
    some.groups_.assign(groups_.data() + begin, groups_.data() + end);
    return some;
}

std::vector<std::int64_t> Candidates::pair_starts() const {
    std::vector<std::int64_t> starts(size() + 1, 0);
    for (std::size_t row = 0; row < size(); ++row)
        starts[row + 1] = starts[row] + static_cast<std::int64_t>(texts(row).size());
    return starts;
}

}  // namespace caplens

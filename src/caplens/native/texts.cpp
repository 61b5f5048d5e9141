#include "texts.h"

#include "ptb.h"

namespace caplens {

namespace {

// utf-8 has no form for a lone surrogate: U+FFFD stands in for it, as in caplens.text.ptb.
nb::object well_formed(nb::handle text) {
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-16-le", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    int little_endian = -1;
    nb::object fixed = nb::steal(PyUnicode_DecodeUTF16(PyBytes_AS_STRING(bytes.ptr()), PyBytes_GET_SIZE(bytes.ptr()),
                                                       "replace", &little_endian));
    if (!fixed.is_valid()) throw nb::python_error();
    return fixed;
}

std::string_view utf8(nb::object& text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data == nullptr) {
        PyErr_Clear();
        text = well_formed(text);
        data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (data == nullptr) throw nb::python_error();
    }
    return {data, static_cast<std::size_t>(size)};
}

bool is_space(std::uint32_t code) { return Py_UNICODE_ISSPACE(code); }

// ASCII above the space cannot be whitespace; anything else gets the full look.
bool may_hold_space(std::string_view token) {
    for (const char c : token)
        if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x80) return true;
    return false;
}

void split_at_spaces(std::string_view text, std::vector<std::string_view>& tokens) {
    tokens.clear();
    std::size_t start = 0;
    for (std::size_t at = text.find(' '); at != text.npos; at = text.find(' ', start)) {
        tokens.push_back(text.substr(start, at - start));
        start = at + 1;
    }
    tokens.push_back(text.substr(start));
}

}  // namespace

Id TextSet::add(nb::handle text) {
    if (!PyUnicode_Check(text.ptr())) throw nb::type_error("texts must be strings");
    nb::object owned = nb::borrow(text);
    const std::string_view bytes = utf8(owned);
    const std::uint64_t hash = hash_bytes(bytes);
    const Id known = table_.find(hash, [&](Id other) { return view(other) == bytes; });
    if (known != kNone) return known;
    const Id added = static_cast<Id>(owned_.size());
    if (added >= kLocal - 1) throw std::length_error("more than two thousand million distinct texts");
    owned_.push_back(std::move(owned));
    table_.insert(hash, added);
    return added;
}

std::string_view TextSet::view(Id text) const {
    nb::object owned = owned_[text];
    return utf8(owned);
}

Tokenizer::Tokenizer(nb::object choice) {
    if (PyCallable_Check(choice.ptr())) {
        choice_ = {Choice::callable, std::move(choice)};
        return;
    }
    const std::string name = nb::cast<std::string>(choice);
    if (name != "ptb" && name != "whitespace") throw nb::value_error("tokenizer must be 'ptb', 'whitespace' or callable");
    choice_ = {name == "ptb" ? Choice::ptb : Choice::spaces, nb::none()};
}

void Tokens::tokenize(const TextSet& texts, const Tokenizer& tokenizer, Vocabulary& vocabulary, Interrupt& interrupt) {
    std::vector<std::string_view> tokens;
    ends_.reserve(texts.size());
    if (tokenizer.choice().kind == Tokenizer::Choice::callable) {
        std::vector<nb::object> owned;
        for (Id text = 0; text < texts.size(); ++text) {
            const nb::object made = tokenizer.choice().call(texts.object(text));
            if (PyUnicode_Check(made.ptr())) throw nb::type_error("a tokenizer must return a list of strings, not a string");
            tokens.clear();
            owned.clear();
            for (nb::handle token : made) {
                if (!PyUnicode_Check(token.ptr())) throw nb::type_error("a tokenizer must return a list of strings");
                owned.push_back(nb::borrow(token));
                tokens.push_back(utf8(owned.back()));
            }
            add(tokens, vocabulary);
        }
        return;
    }
    const bool ptb = tokenizer.choice().kind == Tokenizer::Choice::ptb;
    PtbTokenizer ptb_tokenizer(interrupt);
    constexpr std::size_t chunk = 2048;
    std::vector<std::string_view> views;
    for (std::size_t begin = 0; begin < texts.size(); begin += chunk) {
        make_room(begin, texts.size());
        views.clear();
        for (std::size_t text = begin; text < std::min(begin + chunk, texts.size()); ++text)
            views.push_back(texts.view(static_cast<Id>(text)));
        for_each_row(views.size(), interrupt, [&](std::size_t text) {
            if (ptb)
                ptb_tokenizer.tokenize(views[text], tokens);
            else
                split_at_spaces(views[text], tokens);
            add(tokens, vocabulary);
            interrupt.after(20 * tokens.size());
        });
    }
}

// From the first texts one knows how much all will take: growing step by step would need twice the memory meanwhile.
void Tokens::make_room(std::size_t done, std::size_t texts) {
    if (done == 0) return;
    const double expected = static_cast<double>(ids_.size()) / static_cast<double>(done) * static_cast<double>(texts);
    if (expected > static_cast<double>(ids_.capacity())) ids_.reserve(static_cast<std::size_t>(1.05 * expected) + 1);
}

void Tokens::add(std::span<const std::string_view> tokens, Vocabulary& vocabulary) {
    bool differ = tokens.empty();
    for (const std::string_view token : tokens) {
        if (!token.empty() && !may_hold_space(token)) {
            ids_.push_back(vocabulary.intern(token));
            continue;
        }
        std::size_t runs = 0;
        bool whole = false;
        each_run(token, [](std::uint32_t code) { return !is_space(code); }, [&](std::string_view word) {
            ids_.push_back(vocabulary.intern(word));
            whole = word.size() == token.size();
            ++runs;
        });
        differ = differ || runs != 1 || !whole;
    }
    ends_.push_back(ids_.size());
    if (!differ) return;
    std::vector<Id>& pieces = pieces_[static_cast<Id>(ends_.size() - 1)];
    for (const std::string_view token : tokens) pieces.push_back(vocabulary.intern(token));
    if (pieces.empty()) pieces.push_back(vocabulary.intern(""));
}

void Tokens::append(std::span<const Id> words, Vocabulary& vocabulary) {
    if (words.empty()) return add({}, vocabulary);
    ids_.insert(ids_.end(), words.begin(), words.end());
    ends_.push_back(ids_.size());
}

}  // namespace caplens

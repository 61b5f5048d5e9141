#include "ptb.h"

#include <algorithm>

#include "ptb_text.h"

namespace caplens {
namespace {

using ptb::Action;
using State = uint16_t;

struct Rule {
    Action action;
    uint8_t give_back;    // units at the end that are left to the next token
    uint8_t follow;       // units of context after the token, where their number is fixed
    State head, context;  // start states of the token and of its context, where it is not
    std::string_view text;
};

#include "ptb_automaton.inc"

// A rule that is still open this far after its last match is given up: else long runs without a blank take n² steps.
constexpr size_t kLookahead = 1024;
constexpr size_t kNextLine = 64;  // bytes of the next line that are looked at: a word that opens a sentence, a number
constexpr uint8_t kEnd = kStride - 1;  // the class after the last unit: no rule goes on there

uint8_t class_of(char32_t unit) { return kClass[kBlock[unit >> 8] << 8 | (unit & 0xFF)]; }

State step(State state, uint8_t unit_class) { return kNext[(state & ~kAccepting) * kStride + unit_class]; }

// Where the token ends when its context has no fixed length: as late as a match of the context reaches the end.
size_t split(const Rule& rule, const uint8_t* classes, size_t begin, size_t end, Interrupt& interrupt) {
    size_t best = begin;
    State head = rule.head;
    for (size_t at = begin; at < end; ++at) {
        head = step(head, classes[at]);
        if (head == 0) break;
        if (!(head & kAccepting)) continue;
        State context = rule.context;
        size_t i = at + 1;
        for (; i < end && context != 0; ++i) context = step(context, classes[i]);
        interrupt.after(i - at);
        if (context & kAccepting) best = at + 1;
    }
    return best;
}

bool is_ascii(std::string_view text) {
    char all = 0;
    for (const char c : text) all |= c;
    return (all & 0x80) == 0;
}

// Punctuation that only shows after writing: quotation marks, and soft hyphens with nothing beside them.
bool is_punctuation(std::string_view token) {
    return token == "''" || token == "'" || token == "``" || token == "`" || token == "." || token.empty();
}

}  // namespace

void PtbTokenizer::read_ascii(std::string_view text) {
    classes_.resize(text.size());
    lowered_.resize(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        classes_[i] = kClass[static_cast<unsigned char>(c)];
        lowered_[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
}

void PtbTokenizer::read_utf8(std::string_view text) {
    classes_.clear();
    offsets_.clear();
    for (size_t at = 0; at < text.size();) {
        const auto [point, size] = ptb::decode(text.substr(at));
        offsets_.push_back(at);
        if (point < 0x10000) {
            classes_.push_back(class_of(point));
        } else {
            classes_.insert(classes_.end(), {class_of(0xD800), class_of(0xDC00)});
            offsets_.push_back(at + size);
        }
        at += size;
    }
    offsets_.push_back(text.size());
}

// A caption is one line of many, and "U." at its end is "U" when the next line opens a sentence. Where the next line is
// not known, it is taken to be written like this one: "A" after a caption that starts with a capital, else nothing.
void PtbTokenizer::append_next_line(std::string_view caption, std::optional<std::string_view> rest) {
    if (!rest) {
        const auto letter =
            std::find_if(caption.begin(), caption.end(), [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
        rest = letter != caption.end() && *letter <= 'Z' ? "\nA\n" : "\n";
    }
    const std::string_view seen = rest->substr(0, kNextLine);
    for (size_t at = 0; at < seen.size();) {
        const auto [point, size] = ptb::decode(seen.substr(at));
        classes_.push_back(class_of(point < 0x10000 ? point : 0xD800));
        at += size;
    }
    classes_.push_back(kEnd);
}

void PtbTokenizer::tokenize(std::string_view utf8, std::vector<std::string_view>& tokens,
                            std::optional<std::string_view> rest) {
    tokens.clear();
    written_.clear();
    written_.reserve(utf8.size() * 6);  // the views must stay where they are
    const bool ascii = is_ascii(utf8);
    ascii ? read_ascii(utf8) : read_utf8(utf8);
    const size_t count = classes_.size();
    append_next_line(utf8, rest);
    const uint8_t* const classes = classes_.data();
    const uint8_t space = class_of(' ');

    bool last_kept = false;  // whether the last token of this line was kept
    for (size_t begin = 0; begin < count;) {
        if (classes[begin] == space) {  // no token starts with it, so spare the automaton every other round
            ++begin;
            continue;
        }
        size_t end = begin;
        State matched = 0;
        State state = kStart;
        size_t at = begin;
        while (at - end < kLookahead && (state = step(state, classes[at])) != 0) {
            ++at;
            end = state & kAccepting ? at : end;
            matched = state & kAccepting ? state : matched;
        }
        interrupt_.after(10 + 2 * (at - begin));
        const Rule& rule = kRules[kRule[matched & ~kAccepting]];
        if (rule.head != 0) end = split(rule, classes, begin, end, interrupt_);
        end = std::min(end - rule.follow - rule.give_back, count);

        switch (rule.action) {
            case Action::skip:
                break;
            case Action::line_break:
                if (last_kept) tokens.back() = ptb::strip_end(tokens.back());
                last_kept = false;
                break;
            case Action::drop:
                last_kept = false;
                break;
            case Action::constant:
                tokens.push_back(rule.text);
                last_kept = true;
                break;
            default: {
                std::string_view token;
                if (ascii && rule.action <= Action::word) {
                    token = std::string_view(lowered_).substr(begin, end - begin);
                } else {
                    const size_t from = ascii ? begin : offsets_[begin], to = ascii ? end : offsets_[end];
                    const size_t start = written_.size();
                    ptb::write(rule.action, utf8.substr(from, to - from), written_);
                    token = std::string_view(written_).substr(start);
                }
                last_kept = !is_punctuation(token);
                if (last_kept) tokens.push_back(token);
            }
        }
        begin = end;
    }
    // coco-caption strips a line before it splits it, which also shortens an address that ends in blanks.
    if (last_kept) tokens.back() = ptb::strip_end(tokens.back());
}

}  // namespace caplens

// Greedy arc-eager dependency parsing (Nivre 2003) with the moves and the state network of spaCy's parsers.
//
// What a token adds to the hidden layer when it stands in one of eight places of the state is computed beforehand (one
// matrix product for all tokens); here the states are driven: sum eight rows, max over pieces, score the moves, do one.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "interrupt.h"

namespace nb = nanobind;

namespace caplens {
namespace {

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<2>>;

constexpr std::size_t places = 8;  // tokens that the network sees of a state
constexpr std::size_t pieces = 2;  // of the maxout
enum Move : std::int32_t { shift, reduce, left, right, sentence, moves };

// A half-parsed text. Tokens put back on the buffer lie on `returned`.
class State {
  public:
    explicit State(int length)
        : length_(length),
          head(static_cast<std::size_t>(length), -1),
          label(static_cast<std::size_t>(length), -1),
          fixed_(static_cast<std::size_t>(length)),
          starts_(static_cast<std::size_t>(length)),
          left_(static_cast<std::size_t>(length)),
          right_(static_cast<std::size_t>(length)) {}

    bool done() const { return stack_.empty() && waiting() == 0; }

    // Stack, buffer and the outermost children; -1 where there is none.
    std::array<int, places> context() const {
        const int b0 = buffer(0), s0 = stack(0);
        return {b0, buffer(1), s0, stack(1), stack(2), last(left_, b0), last(left_, s0), last(right_, s0)};
    }

    std::array<bool, moves> allowed() const {
        const bool loaded = !stack_.empty();
        const std::size_t left_over = waiting();
        const int b0 = buffer(0), b1 = buffer(1);
        const bool starts = b0 >= 0 && starts_[at(b0)];
        const bool attach = loaded && left_over > 0 && !starts;
        return {!loaded || (left_over >= 2 && !starts && !fixed_[at(b0)]), loaded, attach, attach,
                left_over >= 2 && b1 == b0 + 1 && !starts_[at(b1)]};
    }

    void apply(Move move, std::int32_t with) {
        const int s0 = stack(0), b0 = buffer(0);
        switch (move) {
            case shift:
                push();
                break;
            case reduce:
                stack_.pop_back();
                if (head[at(s0)] < 0 && !stack_.empty()) {  // a word without a head goes back, once
                    fixed_[at(s0)] = true;
                    returned_.push_back(s0);
                }
                break;
            case left:
                attach(b0, s0, with);
                fixed_[at(b0)] = false;
                stack_.pop_back();
                break;
            case right:
                attach(s0, b0, with);
                push();
                break;
            default:
                starts_[at(buffer(1))] = true;
        }
    }

  private:
    static std::size_t at(int token) { return static_cast<std::size_t>(token); }
    std::size_t waiting() const { return at(length_ - next_) + returned_.size(); }

    int stack(std::size_t depth) const { return depth < stack_.size() ? stack_[stack_.size() - 1 - depth] : -1; }

    int buffer(std::size_t place) const {
        if (place < returned_.size()) return returned_[returned_.size() - 1 - place];
        const int token = next_ + static_cast<int>(place - returned_.size());
        return token < length_ ? token : -1;
    }

    int last(const std::vector<std::vector<int>>& children, int token) const {
        return token < 0 || children[at(token)].empty() ? -1 : children[at(token)].back();
    }

    void push() {
        stack_.push_back(buffer(0));
        if (returned_.empty())
            ++next_;
        else
            returned_.pop_back();
    }

    void attach(int to, int child, std::int32_t with) {
        const int old = head[at(child)];
        if (old >= 0) {
            auto& siblings = (old > child ? left_ : right_)[at(old)];
            if (!siblings.empty() && siblings.back() == child) siblings.pop_back();
        }
        (to > child ? left_ : right_)[at(to)].push_back(child);
        head[at(child)] = to;
        label[at(child)] = with;
    }

    int length_, next_ = 0;

  public:
    std::vector<std::int32_t> head, label;

  private:
    std::vector<bool> fixed_, starts_;
    std::vector<std::vector<int>> left_, right_;
    std::vector<int> stack_, returned_;
};

// Rows of `features`: what token t adds in place p, at [t, p · width]; `rows` maps the tokens of all texts to them.
// Returns head and move per token, -1 and -1 for a root; heads count from the start of the text.
Table parse(const Matrix& features, const Ints& rows, const Ints& lengths, const Vector& padding, const Vector& bias,
            const Matrix& upper, const Vector& upper_bias, const Ints& kinds) {
    const std::size_t hidden = upper.shape(1), width = hidden * pieces, classes = upper.shape(0);
    if (hidden > (std::size_t{1} << 32)) throw std::invalid_argument("the parser's arrays are too wide");
    if (features.shape(1) != places * width || padding.size() != places * width || bias.size() != width ||
        upper_bias.size() != classes || kinds.size() != classes)
        throw std::invalid_argument("the parser's arrays do not fit together");
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths(i) < 0) throw std::invalid_argument("a text has a negative length");
        tokens += static_cast<std::size_t>(lengths(i));
    }
    if (tokens != rows.size()) throw std::invalid_argument("the lengths do not add up to the number of tokens");
    for (std::size_t i = 0; i < tokens; ++i)
        if (rows(i) < 0 || static_cast<std::size_t>(rows(i)) >= features.shape(0))
            throw std::invalid_argument("a token has no row of features");
    for (std::size_t i = 0; i < classes; ++i)
        if (kinds(i) < 0 || kinds(i) >= moves) throw std::invalid_argument("an unknown kind of move");

    auto out = std::make_unique<std::int32_t[]>(std::max<std::size_t>(1, 2 * tokens));
    {
        nb::gil_scoped_release release;
        Interrupt interrupt;
        std::vector<float> sums(width), activation(hidden), scores(classes);
        // Column-major, so that the scores of all moves grow side by side in vector registers.
        std::vector<float> columns(hidden * classes);
        for (std::size_t c = 0; c < classes; ++c)
            for (std::size_t h = 0; h < hidden; ++h) columns[h * classes + c] = upper(c, h);
        std::size_t start = 0;
        for (std::size_t text = 0; text < lengths.size(); ++text) {
            State state(lengths(text));
            while (!state.done()) {
                interrupt.after(places * width + hidden * classes / 4);
                std::copy(bias.data(), bias.data() + width, sums.begin());
                const auto context = state.context();
                for (std::size_t place = 0; place < places; ++place) {
                    const float* row = padding.data() + place * width;
                    if (context[place] >= 0) {
                        const auto which = static_cast<std::size_t>(rows(start + static_cast<std::size_t>(context[place])));
                        row = features.data() + (which * places + place) * width;
                    }
                    for (std::size_t k = 0; k < width; ++k) sums[k] += row[k];
                }
                for (std::size_t h = 0; h < hidden; ++h) activation[h] = std::max(sums[2 * h], sums[2 * h + 1]);
                std::copy(upper_bias.data(), upper_bias.data() + classes, scores.begin());
                for (std::size_t h = 0; h < hidden; ++h)
                    for (std::size_t c = 0; c < classes; ++c) scores[c] += activation[h] * columns[h * classes + c];
                const auto allowed = state.allowed();
                std::size_t best = classes;
                for (std::size_t c = 0; c < classes; ++c)
                    if (allowed[static_cast<std::size_t>(kinds(c))] && (best == classes || scores[c] > scores[best])) best = c;
                if (best == classes) break;  // a model without the plain moves; what is parsed so far stands
                state.apply(static_cast<Move>(kinds(best)), static_cast<std::int32_t>(best));
            }
            for (std::size_t token = 0; token < state.head.size(); ++token) {
                out[2 * (start + token)] = state.head[token];
                out[2 * (start + token) + 1] = state.label[token];
            }
            start += state.head.size();
        }
    }
    std::int32_t* raw = out.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
    return Table(raw, {tokens, std::size_t{2}}, owner);
}

}  // namespace

void bind_arcs(nb::module_& m) {
    m.def("parse_arcs", &parse, nb::arg("features"), nb::arg("rows"), nb::arg("lengths"), nb::arg("padding"), nb::arg("bias"),
          nb::arg("upper"), nb::arg("upper_bias"), nb::arg("kinds"),
          "Heads and moves of every token of many texts, parsed greedily.");
}

}  // namespace caplens

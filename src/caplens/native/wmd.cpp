// Word mover's distance: the exact cost of carrying one bag of word vectors to another.
//
// The transport problem is solved by successive shortest paths on a dense graph with node potentials. Masses are integers
// (a word's count times the other text's length), so the solution is exact and no tolerance is needed.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "interrupt.h"

namespace nb = nanobind;

namespace caplens {
namespace {

using Matrix = nb::ndarray<const float, nb::shape<-1, -1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double, nb::shape<-1>>;
constexpr double infinity = std::numeric_limits<double>::infinity();
// Of one text: the product of two such masses fits into 64 bits, and a table of distances into memory.
constexpr std::int64_t kMostWords = std::int64_t{1} << 31;
constexpr std::int64_t kMostDistinct = 10'000;

// A text as distinct words (rows of the vectors, ascending) and how often each stands there.
struct Bag {
    const std::int64_t* words;
    const std::int64_t* counts;
    std::size_t size;
    std::int64_t total;
};

class Transport {
public:
    explicit Transport(Interrupt& interrupt) : interrupt_(interrupt) {}

    // What is left to move after equal words have met: in a metric space keeping them in place is always optimal.
    void prepare(const Bag& from, const Bag& to, const Matrix& vectors) {
        supply_.clear(), demand_.clear(), sources_.clear(), sinks_.clear();
        std::size_t i = 0, j = 0;
        while (i < from.size || j < to.size) {
            const std::int64_t a = i < from.size ? from.counts[i] * to.total : 0;
            const std::int64_t b = j < to.size ? to.counts[j] * from.total : 0;
            if (j == to.size || (i < from.size && from.words[i] < to.words[j])) {
                add(supply_, sources_, a, from.words[i++]);
            } else if (i == from.size || to.words[j] < from.words[i]) {
                add(demand_, sinks_, b, to.words[j++]);
            } else {
                add(supply_, sources_, a - b, from.words[i++]);
                add(demand_, sinks_, b - a, to.words[j++]);
            }
        }
        scale_ = static_cast<double>(from.total) * static_cast<double>(to.total);
        const std::size_t rows = sources_.size(), columns = sinks_.size(), width = vectors.shape(1);
        cost_.resize(rows * columns);
        for (std::size_t r = 0; r < rows; ++r) {
            const float* a = vectors.data() + static_cast<std::size_t>(sources_[r]) * width;
            interrupt_.after(columns * (5 + width));
            for (std::size_t c = 0; c < columns; ++c) {
                const float* b = vectors.data() + static_cast<std::size_t>(sinks_[c]) * width;
                double sum = 0;
                for (std::size_t k = 0; k < width; ++k) {
                    const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
                    sum += difference * difference;
                }
                cost_[r * columns + c] = std::sqrt(sum);
            }
        }
    }

    // No plan is cheaper than one in which every word goes to its nearest, whichever side is asked (RWMD).
    double lower_bound() const {
        const std::size_t rows = sources_.size(), columns = sinks_.size();
        double out = 0, in = 0;
        for (std::size_t r = 0; r < rows; ++r) {
            double least = infinity;
            for (std::size_t c = 0; c < columns; ++c) least = std::min(least, cost_[r * columns + c]);
            out += static_cast<double>(supply_[r]) * least;
        }
        for (std::size_t c = 0; c < columns; ++c) {
            double least = infinity;
            for (std::size_t r = 0; r < rows; ++r) least = std::min(least, cost_[r * columns + c]);
            in += static_cast<double>(demand_[c]) * least;
        }
        return rows ? std::max(out, in) / scale_ : 0.0;
    }

    double solve() {
        const std::size_t rows = sources_.size(), columns = sinks_.size();
        flow_.assign(rows * columns, 0);
        out_potential_.assign(rows, 0.0);
        in_potential_.assign(columns, infinity);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < columns; ++c)
                in_potential_[c] = std::min(in_potential_[c], cost_[r * columns + c]);
        for (std::size_t r = 0; r < rows; ++r)
            while (supply_[r] > 0) augment(r);
        double sum = 0;
        for (std::size_t e = 0; e < flow_.size(); ++e) sum += static_cast<double>(flow_[e]) * cost_[e];
        return rows ? sum / scale_ : 0.0;
    }

private:
    static void add(std::vector<std::int64_t>& masses, std::vector<std::int64_t>& nodes, std::int64_t mass,
                    std::int64_t word) {
        if (mass <= 0) return;
        masses.push_back(mass);
        nodes.push_back(word);
    }

    // Dijkstra over reduced costs from one source to the nearest sink with room, then as much mass as fits that path.
    void augment(std::size_t root) {
        const std::size_t rows = sources_.size(), columns = sinks_.size();
        out_distance_.assign(rows, infinity), in_distance_.assign(columns, infinity);
        out_done_.assign(rows, 0), in_done_.assign(columns, 0);
        out_from_.assign(rows, columns), in_from_.assign(columns, rows);
        out_distance_[root] = 0;
        std::size_t row = root, target = columns;
        while (true) {
            out_done_[row] = 1;
            interrupt_.after(3 * columns);
            for (std::size_t c = 0; c < columns; ++c) {
                if (in_done_[c]) continue;
                const double step = cost_[row * columns + c] + out_potential_[row] - in_potential_[c];
                const double reach = out_distance_[row] + std::max(0.0, step);
                if (reach < in_distance_[c]) in_distance_[c] = reach, in_from_[c] = row;
            }
            // Sinks are settled until one has room or gives a source that is nearer than every open sink.
            std::size_t next = rows;
            while (next == rows) {
                interrupt_.after(2 * (rows + columns));
                std::size_t sink = columns;
                for (std::size_t c = 0; c < columns; ++c)
                    if (!in_done_[c] && (sink == columns || in_distance_[c] < in_distance_[sink])) sink = c;
                std::size_t source = rows;
                for (std::size_t r = 0; r < rows; ++r)
                    if (!out_done_[r] && out_distance_[r] < infinity &&
                        (source == rows || out_distance_[r] < out_distance_[source]))
                        source = r;
                if (source < rows && (sink == columns || out_distance_[source] <= in_distance_[sink])) {
                    next = source;
                    break;
                }
                in_done_[sink] = 1;
                if (demand_[sink] > 0) {
                    target = sink;
                    break;
                }
                for (std::size_t r = 0; r < rows; ++r) {
                    if (out_done_[r] || flow_[r * columns + sink] == 0) continue;
                    const double step = -cost_[r * columns + sink] + in_potential_[sink] - out_potential_[r];
                    const double reach = in_distance_[sink] + std::max(0.0, step);
                    if (reach < out_distance_[r]) out_distance_[r] = reach, out_from_[r] = sink;
                }
            }
            if (target < columns) break;
            row = next;
        }
        const double length = in_distance_[target];
        for (std::size_t r = 0; r < rows; ++r)
            if (out_done_[r]) out_potential_[r] += out_distance_[r] - length;
        for (std::size_t c = 0; c < columns; ++c)
            if (in_done_[c]) in_potential_[c] += in_distance_[c] - length;
        std::int64_t mass = std::min(supply_[root], demand_[target]);
        for (std::size_t c = target, r = in_from_[c]; r != root; c = out_from_[r], r = in_from_[c])
            mass = std::min(mass, flow_[r * columns + out_from_[r]]);
        for (std::size_t c = target;;) {
            const std::size_t r = in_from_[c];
            flow_[r * columns + c] += mass;
            if (r == root) break;
            c = out_from_[r];
            flow_[r * columns + c] -= mass;
        }
        supply_[root] -= mass;
        demand_[target] -= mass;
    }

    Interrupt& interrupt_;
    std::vector<std::int64_t> supply_, demand_, sources_, sinks_, flow_;
    std::vector<double> cost_, out_potential_, in_potential_, out_distance_, in_distance_;
    std::vector<char> out_done_, in_done_;
    std::vector<std::size_t> out_from_, in_from_;
    double scale_ = 1;
};

void check(bool fine, const char* what) {
    if (!fine) throw std::invalid_argument(what);
}

// The distance of every caption to its nearest reference; infinite where either side has no words.
Doubles nearest(const Matrix& vectors, const Ints& starts, const Ints& words, const Ints& counts, const Ints& candidates,
                const Ints& pair_starts, const Ints& references) {
    const std::size_t texts = starts.size() ? starts.size() - 1 : 0, captions = candidates.size();
    check(starts.size() > 0 && starts(0) == 0 && starts(texts) == static_cast<std::int64_t>(words.size()), "bad starts");
    check(words.size() == counts.size(), "words and counts differ in length");
    check(pair_starts.size() == captions + 1 && pair_starts(0) == 0 &&
              pair_starts(captions) == static_cast<std::int64_t>(references.size()),
          "bad pair_starts");
    for (std::size_t t = 0; t < texts; ++t) {
        check(starts(t) <= starts(t + 1), "starts must not fall");
        check(starts(t + 1) - starts(t) <= kMostDistinct, "a text has more than 10,000 different words");
    }
    for (std::size_t i = 0; i < captions; ++i) check(pair_starts(i) <= pair_starts(i + 1), "pair_starts must not fall");
    for (std::size_t i = 0; i < words.size(); ++i)
        check(words(i) >= 0 && static_cast<std::size_t>(words(i)) < vectors.shape(0) && counts(i) > 0, "bad word");
    for (std::size_t t = 0; t < texts; ++t) {
        std::int64_t left = kMostWords;
        for (auto i = static_cast<std::size_t>(starts(t)); i < static_cast<std::size_t>(starts(t + 1)); ++i) {
            check(counts(i) <= left, "a text has more than 2,147,483,648 words");
            left -= counts(i);
        }
    }
    for (std::size_t i = 0; i < captions; ++i)
        check(candidates(i) >= 0 && static_cast<std::size_t>(candidates(i)) < texts, "bad candidate");
    for (std::size_t i = 0; i < references.size(); ++i)
        check(references(i) >= 0 && static_cast<std::size_t>(references(i)) < texts, "bad reference");

    // Nothing compares with NaN, so that a search would find no way.
    check(std::all_of(vectors.data(), vectors.data() + vectors.size(), [](float value) { return std::isfinite(value); }),
          "vectors must be finite");

    auto out = std::make_unique<double[]>(std::max<std::size_t>(1, captions));
    {
        nb::gil_scoped_release release;
        const auto bag = [&](std::int64_t text) {
            const auto begin = static_cast<std::size_t>(starts(static_cast<std::size_t>(text)));
            const auto end = static_cast<std::size_t>(starts(static_cast<std::size_t>(text) + 1));
            std::int64_t total = 0;
            for (std::size_t i = begin; i < end; ++i) total += counts(i);
            return Bag{words.data() + begin, counts.data() + begin, end - begin, total};
        };
        Interrupt interrupt;
        Transport transport(interrupt);
        std::vector<std::pair<double, std::int64_t>> bounds;
        for (std::size_t i = 0; i < captions; ++i) {
            const Bag caption = bag(candidates(i));
            interrupt.after(100);
            bounds.clear();
            for (auto p = pair_starts(i); p < pair_starts(i + 1); ++p) {
                const auto text = references(static_cast<std::size_t>(p));
                const Bag reference = bag(text);
                if (caption.size == 0 || reference.size == 0) continue;
                transport.prepare(caption, reference, vectors);
                bounds.emplace_back(transport.lower_bound(), text);
            }
            std::sort(bounds.begin(), bounds.end());
            double best = infinity;
            for (const auto& [bound, text] : bounds) {
                if (bound >= best) break;  // neither this reference nor a later one can be nearer
                transport.prepare(caption, bag(text), vectors);
                best = std::min(best, transport.solve());
            }
            out[i] = best;
        }
    }
    double* data = out.release();
    nb::capsule owner(data, [](void* pointer) noexcept { delete[] static_cast<double*>(pointer); });
    return Doubles(data, {captions}, owner);
}

}  // namespace

void bind_wmd(nb::module_& m) {
    m.def("wmd_nearest", &nearest, nb::arg("vectors"), nb::arg("starts"), nb::arg("words"), nb::arg("counts"),
          nb::arg("candidates"), nb::arg("pair_starts"), nb::arg("references"));
}

}  // namespace caplens

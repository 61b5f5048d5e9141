// Kendall pair counts of many resamples of the same rows, O(n log k) each, k being the smaller number of distinct values.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "interrupt.h"

namespace nb = nanobind;

namespace caplens {
namespace {

using Ranks = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Masks = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

constexpr std::size_t columns = 6;
// Of one resample; the number of its pairs then fits into 64 bits.
constexpr std::int64_t kMostDraws = std::int64_t{1} << 31;

// Prefix sums over rank classes (a Fenwick tree).
class Tree {
  public:
    explicit Tree(std::size_t classes) : sums_(classes + 1) {}

    void clear() { std::fill(sums_.begin(), sums_.end(), 0); }

    void add(std::size_t rank, std::int64_t weight) {
        for (std::size_t node = rank + 1; node < sums_.size(); node += node & (~node + 1)) sums_[node] += weight;
    }

    // Weight of all classes below `rank`.
    std::int64_t below(std::size_t rank) const {
        std::int64_t sum = 0;
        for (std::size_t node = rank; node > 0; node &= node - 1) sum += sums_[node];
        return sum;
    }

  private:
    std::vector<std::int64_t> sums_;
};

double pairs(std::int64_t weight) { return 0.5 * static_cast<double>(weight) * static_cast<double>(weight - 1); }

// One row of a resample: its classes and how often it was drawn.
struct Row {
    std::int32_t x, y;
    std::int64_t weight;
};

// Concordant minus discordant pairs, pairs tied in x, pairs tied in y, all pairs, distinct x, distinct y.
// `rows` must be sorted by x, and their weights must not add up to more than kMostDraws.
void count(const std::vector<Row>& rows, Tree& tree, std::vector<std::int64_t>& y_weight, double* out, Interrupt& interrupt) {
    tree.clear();
    interrupt.after(y_weight.size());
    std::fill(y_weight.begin(), y_weight.end(), 0);
    double score = 0, tied_x = 0, tied_y = 0;
    std::int64_t seen = 0;
    std::size_t distinct_x = 0, distinct_y = 0;
    for (std::size_t start = 0; start < rows.size();) {
        std::size_t stop = start;
        std::int64_t group = 0, difference = 0;
        for (; stop < rows.size() && rows[stop].x == rows[start].x; ++stop) {
            const Row& row = rows[stop];
            interrupt.after(50);
            const std::size_t y = static_cast<std::size_t>(row.y);
            const std::int64_t less = tree.below(y);
            difference += row.weight * (less - (seen - less - y_weight[y]));
            group += row.weight;
        }
        for (std::size_t at = start; at < stop; ++at) {
            const std::size_t y = static_cast<std::size_t>(rows[at].y);
            tree.add(y, rows[at].weight);
            y_weight[y] += rows[at].weight;
        }
        score += static_cast<double>(difference);
        tied_x += pairs(group);
        seen += group;
        ++distinct_x;
        start = stop;
    }
    for (const std::int64_t weight : y_weight) {
        tied_y += pairs(weight);
        distinct_y += weight > 0;
    }
    const double row[columns] = {score, tied_x, tied_y, pairs(seen), static_cast<double>(distinct_x),
                                 static_cast<double>(distinct_y)};
    std::copy(row, row + columns, out);
}

// How many classes ranks from 0 on have. They are numbered without gaps, over at most two columns: other numbers would ask for
// memory that no row needs.
std::size_t classes_of(const Ranks& ranks) {
    std::int32_t most = -1;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks(i) < 0) throw std::invalid_argument("ranks must not be negative");
        most = std::max(most, ranks(i));
    }
    const std::size_t classes = static_cast<std::size_t>(std::int64_t{most} + 1);
    if (classes > 2 * ranks.size()) throw std::invalid_argument("a rank is larger than the number of rows allows");
    return classes;
}

void check_units(const Ranks& units, std::size_t rows, std::size_t count) {
    if (units.size() != rows) throw std::invalid_argument("one unit per row is needed");
    for (std::size_t i = 0; i < rows; ++i)
        if (units(i) < 0 || static_cast<std::size_t>(units(i)) >= count) throw std::invalid_argument("a unit is out of range");
}

void check_sizes(std::size_t rows, std::size_t samples) {
    if (rows >= kMostDraws) throw std::invalid_argument("more than 2,147,483,647 rows");
    if (samples >= kMostDraws) throw std::invalid_argument("more than 2,147,483,647 samples");
}

Table table(std::unique_ptr<double[]> data, std::size_t rows) {
    double* raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return Table(raw, {rows, columns}, owner);
}

// Each row of `weights` says how often every unit (an image with all its rows) was drawn.
Table resampled(const Ranks& x, const Ranks& y, const Ranks& units, const Weights& weights) {
    const std::size_t n = x.size(), samples = weights.shape(0);
    if (y.size() != n) throw std::invalid_argument("x and y differ in length");
    check_sizes(n, samples);
    check_units(units, n, weights.shape(1));
    const std::size_t x_classes = classes_of(x), y_classes = classes_of(y);
    auto out = std::make_unique_for_overwrite<double[]>(std::max<std::size_t>(1, samples * columns));
    {
        nb::gil_scoped_release release;
        Interrupt interrupt;
        // The counts are symmetric: the tree stands over whichever side has fewer classes.
        const bool swap = x_classes < y_classes;
        const Ranks& sorted = swap ? y : x;
        const Ranks& ranked = swap ? x : y;
        std::vector<std::uint32_t> order(n);
        for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
            interrupt.after(10);
            return sorted(a) < sorted(b);
        });
        const std::size_t classes = std::min(x_classes, y_classes);
        Tree tree(classes);
        std::vector<std::int64_t> y_weight(classes);
        std::vector<Row> rows;
        rows.reserve(n);
        for (std::size_t s = 0; s < samples; ++s) {
            rows.clear();
            std::int64_t draws = 0;
            for (const auto i : order) {
                const std::int64_t weight = weights(s, static_cast<std::size_t>(units(i)));
                if (weight < 0) throw std::invalid_argument("a weight is negative");
                draws += weight;
                if (weight > 0) rows.push_back({sorted(i), ranked(i), weight});
                interrupt.after(5);
            }
            if (draws > kMostDraws) throw std::invalid_argument("a sample draws more than 2,147,483,648 rows");
            double* row = out.get() + s * columns;
            count(rows, tree, y_weight, row, interrupt);
            if (swap) {
                std::swap(row[1], row[2]);
                std::swap(row[4], row[5]);
            }
        }
    }
    return table(std::move(out), samples);
}

// Every row of `masks` picks, unit by unit, whether x comes from `a` (0) or from `b` (1); both in one rank space.
Table swapped(const Ranks& a, const Ranks& b, const Ranks& y, const Ranks& units, const Masks& masks) {
    const std::size_t n = a.size(), samples = masks.shape(0);
    if (b.size() != n || y.size() != n) throw std::invalid_argument("a, b and y differ in length");
    check_sizes(n, samples);
    check_units(units, n, masks.shape(1));
    const std::size_t x_classes = std::max(classes_of(a), classes_of(b)), y_classes = classes_of(y);
    auto out = std::make_unique_for_overwrite<double[]>(std::max<std::size_t>(1, samples * columns));
    {
        nb::gil_scoped_release release;
        Interrupt interrupt;
        Tree tree(y_classes);
        std::vector<std::int64_t> y_weight(y_classes);
        std::vector<std::uint32_t> starts(x_classes + 1);
        std::vector<std::int32_t> x(n);
        std::vector<Row> rows(n);
        for (std::size_t s = 0; s < samples; ++s) {
            std::fill(starts.begin(), starts.end(), 0);
            for (std::size_t i = 0; i < n; ++i) {
                x[i] = masks(s, static_cast<std::size_t>(units(i))) ? b(i) : a(i);
                ++starts[static_cast<std::size_t>(x[i]) + 1];
                interrupt.after(5);
            }
            for (std::size_t c = 1; c < starts.size(); ++c) starts[c] += starts[c - 1];
            for (std::size_t i = 0; i < n; ++i) rows[starts[static_cast<std::size_t>(x[i])]++] = {x[i], y(i), 1};
            count(rows, tree, y_weight, out.get() + s * columns, interrupt);
        }
    }
    return table(std::move(out), samples);
}

}  // namespace

void bind_kendall(nb::module_& m) {
    m.def("kendall_resampled", &resampled, nb::arg("x"), nb::arg("y"), nb::arg("units"), nb::arg("weights"));
    m.def("kendall_swapped", &swapped, nb::arg("a"), nb::arg("b"), nb::arg("y"), nb::arg("units"), nb::arg("masks"));
}

}  // namespace caplens

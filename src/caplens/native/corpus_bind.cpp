// Python's door to references, candidates and the loops of the n-gram metrics.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "corpus.h"

namespace caplens {

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An uninitialized numpy array, and where its numbers go.
template <class T>
nb::object make_array(std::initializer_list<std::size_t> shape, T*& data) {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    data = new T[size > 0 ? size : 1];
    const nb::capsule owner(data, [](void* numbers) noexcept { delete[] static_cast<T*>(numbers); });
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.begin(), owner));
}

template <class T>
nb::object as_array(const std::vector<T>& values) {
    T* data = nullptr;
    nb::object array = make_array<T>({values.size()}, data);
    std::copy(values.begin(), values.end(), data);
    return array;
}

template <class T>
std::span<const T> as_span(const Vector<T>& array) {
    return {array.data(), array.size()};
}

std::size_t pairs(const Candidates& candidates) { return static_cast<std::size_t>(candidates.pair_starts().back()); }

void same_references(const Candidates& candidates, const References& references) {
    if (&candidates.references() != &references) throw nb::value_error("made for other references");
}

nb::list words_of(const Vocabulary& vocabulary) {
    nb::list words;
    for (Id id = 0; id < vocabulary.size(); ++id) {
        const std::string_view word = vocabulary.word(id);
        words.append(nb::str(word.data(), word.size()));
    }
    return words;
}

}  // namespace

void bind_corpus(nb::module_& m) {
    nb::class_<References>(m, "References")
        .def(nb::init<nb::iterable, nb::object>(), nb::arg("groups"), nb::arg("tokenizer"))
        .def("__len__", &References::groups)
        .def("words", [](const References& self) { return words_of(self.vocabulary()); });

    nb::class_<NgramIndex>(m, "NgramIndex")
        .def("__init__",
             [](NgramIndex* self, std::shared_ptr<const References> references, Id least) {
                 new (self) NgramIndex(std::move(references), least);
             },
             nb::arg("references"), nb::kw_only(), nb::arg("least") = 2)
        .def("__init__",
             [](NgramIndex* self, std::shared_ptr<const References> references, std::vector<std::string> words,
                Vector<Id> prefixes, Vector<Id> lasts, Vector<Id> frequencies) {
                 const FrequencyTable table{std::move(words), as_span(prefixes), as_span(lasts), as_span(frequencies)};
                 new (self) NgramIndex(std::move(references), table);
             },
             nb::arg("references"), nb::arg("words"), nb::arg("prefixes"), nb::arg("lasts"), nb::arg("frequencies"))
        .def("__len__", &NgramIndex::size)
        .def("frequencies", [](const NgramIndex& self) { return as_array(self.frequencies()); })
        .def("document_frequency", [](const NgramIndex& self) { return as_array(self.document_frequency()); })
        .def("keys", [](const NgramIndex& self) { return as_array(self.keys()); });

    nb::class_<TfIdf>(m, "TfIdf")
        .def("__init__",
             [](TfIdf* self, std::shared_ptr<const NgramIndex> index, Vector<double> idf, double unseen) {
                 if (idf.size() != index->frequencies().size())
                     throw nb::value_error("one idf per frequency of the index is needed");
                 new (self) TfIdf(std::move(index), as_span(idf), unseen);
             },
             nb::arg("index"), nb::arg("idf"), nb::arg("unseen"))
        .def_prop_ro("all_zero", &TfIdf::all_zero);

    nb::class_<WordRuns>(m, "WordRuns")
        .def("__init__",
             [](WordRuns* self, std::shared_ptr<const References> references, bool whole_tokens) {
                 new (self) WordRuns(std::move(references), whole_tokens);
             },
             nb::arg("references"), nb::arg("whole_tokens"));

    nb::class_<TokenMap>(m, "TokenMap")
        .def("__init__",
             [](TokenMap* self, std::shared_ptr<const References> references, nb::iterable words) {
                 new (self) TokenMap(std::move(references), words);
             },
             nb::arg("references"), nb::arg("words"));

    nb::class_<Candidates>(m, "Candidates")
        .def("__init__",
             [](Candidates* self, std::shared_ptr<const References> references, nb::iterable texts,
                Vector<std::int64_t> groups) {
                 new (self) Candidates(std::move(references), texts, as_span(groups));
             },
             nb::arg("references"), nb::arg("texts"), nb::arg("groups"))
        .def("__init__",
             [](Candidates* self, const TokenMap& words, Vector<std::int64_t> ids, Vector<std::int64_t> lengths,
                Vector<std::int64_t> groups) {
                 new (self) Candidates(words, as_span(ids), as_span(lengths), as_span(groups));
             },
             nb::arg("words"), nb::arg("ids"), nb::arg("lengths"), nb::arg("groups"))
        .def("__len__", &Candidates::size)
        .def("rows", &Candidates::rows, nb::arg("begin"), nb::arg("end"))
        .def("pair_starts", [](const Candidates& self) { return as_array(self.pair_starts()); })
        .def("lengths",
             [](const Candidates& self) {
                 std::int64_t* data = nullptr;
                 nb::object array = make_array<std::int64_t>({self.size()}, data);
                 for (std::size_t row = 0; row < self.size(); ++row)
                     data[row] = static_cast<std::int64_t>(self.words(row).size());
                 return array;
             })
        .def("reference_lengths",
             [](const Candidates& self) {
                 std::int64_t* data = nullptr;
                 nb::object array = make_array<std::int64_t>({pairs(self)}, data);
                 for (std::size_t row = 0; row < self.size(); ++row)
                     for (const Id text : self.texts(row))
                         *data++ = static_cast<std::int64_t>(self.references().tokens().words(text).size());
                 return array;
             })
        .def("bleu_counts",
             [](const Candidates& self) {
                 double* data = nullptr;
                 nb::object array = make_array<double>({self.size(), kBleuColumns}, data);
                 bleu_counts(self, data);
                 return array;
             })
        .def("common_subsequences",
             [](const Candidates& self) {
                 std::int64_t* data = nullptr;
                 nb::object array = make_array<std::int64_t>({pairs(self), 3}, data);
                 common_subsequences(self, data);
                 return array;
             })
        .def("consensus",
             [](const Candidates& self, const TfIdf& weights, bool clip, Vector<double> penalties) {
                 same_references(self, weights.index().references());
                 if (penalties.size() != pairs(self)) throw nb::value_error("one penalty per pair is needed");
                 double* data = nullptr;
                 nb::object array = make_array<double>({self.size(), static_cast<std::size_t>(kLongest)}, data);
                 consensus(self, weights, clip, as_span(penalties), data);
                 return array;
             },
             nb::arg("weights"), nb::arg("clip"), nb::arg("penalties"))
        .def("repetitions",
             [](const Candidates& self, const WordRuns& runs) {
                 same_references(self, runs.references());
                 double* sums = nullptr;
                 std::int64_t *distinct = nullptr, *total = nullptr;
                 nb::object first = make_array<double>({pairs(self)}, sums);
                 nb::object second = make_array<std::int64_t>({self.size()}, distinct);
                 nb::object third = make_array<std::int64_t>({self.size()}, total);
                 repetitions(self, runs, sums, distinct, total);
                 return nb::make_tuple(first, second, third);
             },
             nb::arg("runs"));
}

}  // namespace caplens

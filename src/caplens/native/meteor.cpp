// Python's view of METEOR: normalize lines, score captions against references, explain one alignment, build the indexes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>

#include "held_texts.h"
#include "meteor_align.h"
#include "meteor_data.h"
#include "meteor_text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace caplens::meteor {

namespace {

using Path = std::optional<std::filesystem::path>;
using Lines = std::vector<std::string>;

// Most captions are letters and spaces, and come back as the object they are.
nb::list normalize_lines(const nb::list &lines) {
    nb::list out;
    Interrupt interrupt;
    for (nb::handle line : lines) {
        if (!PyUnicode_Check(line.ptr())) throw nb::type_error("lines must be strings");
        auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(line.ptr()));
        interrupt.after(50 + length);
        if (PyUnicode_IS_ASCII(line.ptr()) &&
            is_plain({static_cast<const char *>(PyUnicode_DATA(line.ptr())), length})) {
            out.append(line);
            continue;
        }
        std::u32string text(length, U'\0');
        for (std::size_t i = 0; i < length; ++i) {
            char32_t c = PyUnicode_READ_CHAR(line.ptr(), static_cast<Py_ssize_t>(i));
            text[i] = c >= 0xD800 && c < 0xE000 ? 0xFFFD : c;  // half a character: no encoding can carry it
        }
        std::u32string done = normalize(text, interrupt);
        out.append(nb::steal(PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, done.data(), static_cast<Py_ssize_t>(done.size()))));
    }
    return out;
}

// A caption and what it is compared with.
struct Row {
    std::string_view caption;
    std::vector<std::string_view> references;
};

// METEOR with the data it was given; a lexicon lives as long as one call, so that calls do not disturb each other.
class Meteor {
public:
    using Alignment = std::vector<std::tuple<int, int, int, int, int>>;

    // For other languages than English the stems of words, and alpha, beta, gamma, delta and the weights of the modules.
    Meteor(Lines function_words, const Path &synonyms, const Path &paraphrases,
           const std::optional<std::unordered_map<std::string, std::string>> &stems,
           const std::optional<std::array<double, 8>> &parameters)
        : function_words_(std::move(function_words)) {
        if (stems) stems_.emplace(stems->begin(), stems->end());
        if (parameters) {
            const auto &p = *parameters;
            parameters_ = {p[0], p[1], p[2], p[3], {p[4], p[5], p[6], p[7]}};
        }
        if (synonyms) synonyms_ = open_index<Synonyms>(*synonyms);
        if (paraphrases) paraphrases_ = open_index<Paraphrases>(*paraphrases);
    }

    // Counts per caption, the reference they come from, and how many captions were too long for the search.
    auto score(const nb::list &captions, const nb::list &references) const {
        const std::size_t count_of = captions.size();
        auto rows = std::make_unique<double[]>(count_of * columns);
        auto best = std::make_unique<std::int64_t[]>(count_of);
        std::size_t long_captions = 0;
        const auto read = [&](std::size_t i, HeldTexts &texts, Row &row) {
            row.references.clear();
            row.caption = texts.add(item_of(captions, i));
            for (nb::handle text : item_of(references, i)) row.references.push_back(texts.add(text));
        };
        each_row(captions, references, read, [&](std::size_t i, const Row &row, Lexicon &lexicon, Aligner &aligner) {
            Sentence caption = lexicon.read(row.caption);
            double top = -1;
            bool is_long = false;
            for (std::size_t j = 0; j < row.references.size(); ++j) {
                Sentence reference = lexicon.read(row.references[j]);
                Counts counts = count(caption, reference, aligner.align(caption, reference), parameters_);
                is_long |= Aligner::is_long(caption, reference);
                double score = counts.score(parameters_);
                if (score <= top) continue;  // of equal references the first
                top = score;
                best[i] = static_cast<std::int64_t>(j);
                const double values[columns] = {counts.caption_matches,  counts.reference_matches,
                                                counts.caption_length,   counts.reference_length,
                                                counts.matched_words,    counts.chunks};
                std::copy(values, values + columns, &rows[i * columns]);
            }
            long_captions += is_long;
        });
        return std::tuple(hand_over<double, 2>(std::move(rows), {count_of, columns}),
                          hand_over<std::int64_t, 1>(std::move(best), {count_of}), long_captions);
    }

    // (module, start in the caption, length, start in the reference, length) per match, by place in the reference, of many
    // pairs with one lexicon: a new one costs ten times what an alignment does.
    std::vector<Alignment> align_all(const nb::list &captions, const nb::list &references) const {
        std::vector<Alignment> alignments(captions.size());
        const auto read = [&](std::size_t i, HeldTexts &texts, Row &row) {
            row = {texts.add(item_of(captions, i)), {texts.add(item_of(references, i))}};
        };
        each_row(captions, references, read, [&](std::size_t i, const Row &row, Lexicon &lexicon, Aligner &aligner) {
            Sentence caption = lexicon.read(row.caption), reference = lexicon.read(row.references.front());
            for (const Match &match : aligner.align(caption, reference))
                alignments[i].emplace_back(match.module, match.other, match.other_length, match.start, match.length);
        });
        return alignments;
    }

    Alignment align(const nb::str &caption, const nb::str &reference) const {
        nb::list captions, references;
        captions.append(caption);
        references.append(reference);
        return align_all(captions, references).front();
    }

    std::string synonym_source() const { return synonyms_ ? synonyms_->source() : ""; }
    std::string paraphrase_source() const { return paraphrases_ ? paraphrases_->source() : ""; }

private:
    static constexpr std::size_t columns = 6;

    // Reads the rows with the GIL and works on them without it, some hundred at a time.
    template <class Read, class Work>
    void each_row(const nb::list &captions, const nb::list &references, Read read, Work work) const {
        constexpr std::size_t chunk = 256;
        const std::size_t count_of = captions.size();
        if (references.size() != count_of) throw nb::value_error("as many references as captions are needed");
        Interrupt interrupt;
        Lexicon lexicon(function_words_, synonyms_.get(), paraphrases_.get(), interrupt, stems_ ? &*stems_ : nullptr);
        Aligner aligner(lexicon, interrupt);
        HeldTexts texts;
        std::vector<Row> rows(std::min(chunk, count_of));
        for (std::size_t begin = 0; begin < count_of; begin += chunk) {
            const std::size_t end = std::min(begin + chunk, count_of);
            texts.clear();
            for (std::size_t i = begin; i < end; ++i) read(i, texts, rows[i - begin]);
            nb::gil_scoped_release release;
            for (std::size_t i = begin; i < end; ++i) work(i, rows[i - begin], lexicon, aligner);
        }
    }

    template <class T, std::size_t N>
    static nb::ndarray<nb::numpy, T, nb::ndim<N>> hand_over(std::unique_ptr<T[]> data, std::array<std::size_t, N> shape) {
        T *raw = data.release();
        nb::capsule owner(raw, [](void *p) noexcept { delete[] static_cast<T *>(p); });
        return {raw, N, shape.data(), owner};
    }

    Lines function_words_;
    Parameters parameters_;
    std::optional<Stems> stems_;
    std::shared_ptr<const Synonyms> synonyms_;
    std::shared_ptr<const Paraphrases> paraphrases_;
};

std::string stem_word(std::string_view word) {
    std::u16string stemmed = stem(to_utf16(from_utf8(word)));
    return to_utf8(from_utf16(stemmed));
}

}  // namespace

}  // namespace caplens::meteor

namespace caplens {

void bind_meteor(nb::module_ &m) {
    using namespace meteor;
    nb::exception<DamagedIndex>(m, "DamagedIndex", PyExc_RuntimeError);
    m.def("meteor_normalize", &normalize_lines, "lines"_a);
    m.def("english_stem", &stem_word, "word"_a);
    nb::class_<Meteor>(m, "Meteor")
        .def(nb::init<Lines, const Path &, const Path &, const std::optional<std::unordered_map<std::string, std::string>> &,
                      const std::optional<std::array<double, 8>> &>(),
             "function_words"_a, "synonyms"_a.none(), "paraphrases"_a.none(), "stems"_a.none() = nb::none(),
             "parameters"_a.none() = nb::none(), nb::call_guard<nb::gil_scoped_release>())
        .def("score", &Meteor::score, "captions"_a, "references"_a)
        .def("align", &Meteor::align, "caption"_a, "reference"_a)
        .def("align_all", &Meteor::align_all, "captions"_a, "references"_a)
        .def_prop_ro("synonym_source", &Meteor::synonym_source)
        .def_prop_ro("paraphrase_source", &Meteor::paraphrase_source);
    nb::class_<Synonyms>(m, "Synonyms")
        .def(nb::init<const std::filesystem::path &>(), "path"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("synsets", &Synonyms::synsets, "word"_a)
        .def_prop_ro("source", &Synonyms::source);
    nb::class_<ParaphraseBuilder>(m, "ParaphraseBuilder")
        .def(nb::init<>())
        .def("feed",
             [](ParaphraseBuilder &self, const nb::bytes &chunk) {
                 std::string_view view(chunk.c_str(), chunk.size());
                 nb::gil_scoped_release release;
                 self.feed(view);
             },
             "chunk"_a)
        .def("write", &ParaphraseBuilder::write, "path"_a, "source"_a, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("entries", &ParaphraseBuilder::entries);
    m.def("write_synonyms", &write_synonyms, "path"_a, "words"_a, "irregular"_a, "source"_a);
}

}  // namespace caplens

// A libFuzzer target over everything in C++ that reads bytes from outside: the tokenizer, METEOR's normalizer and stemmer,
// and METEOR's index files under a right checksum, opened and used. `make attack` builds it where there is a clang.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "meteor_align.h"
#include "meteor_text.h"
#include "ptb.h"

namespace caplens {
void Interrupt::look() { done_ = 0; }  // there is no Python here to ask for signals
}  // namespace caplens

namespace {

using namespace caplens;
Interrupt interrupt;

void tokenize(std::string_view text) {
    static PtbTokenizer tokenizer(interrupt);
    std::vector<std::string_view> tokens;
    tokenizer.tokenize(text, tokens);
    for (auto token : tokens)
        if (token.empty()) __builtin_trap();
}

void normalize(std::string_view text) {
    const std::string line = meteor::to_utf8(meteor::normalize(meteor::from_utf8(text), interrupt));
    for (auto word : meteor::split_words(line)) {
        const auto stemmed = meteor::stem(meteor::to_utf16(meteor::from_utf8(word)));
        meteor::java_hash(stemmed);
    }
}

// The bytes under a header with their right size and checksum, as a file.
std::filesystem::path sealed(std::string_view kind, std::string_view content) {
    static const auto path = std::filesystem::path("/dev/shm") / ("caplens-fuzz-" + std::to_string(getpid()));
    meteor::Header header{};
    std::memcpy(header.kind.data(), kind.data(), kind.size());
    header.source[0] = 'x';
    header.size = sizeof header + content.size();
    header.checksum = meteor::checksum(header, std::as_bytes(std::span(content)));
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char *>(&header), sizeof header);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    return path;
}

void use(const meteor::Synonyms *synonyms, const meteor::Paraphrases *paraphrases) {
    static const std::vector<std::string> function_words{"a", "the"};
    meteor::Lexicon lexicon(function_words, synonyms, paraphrases, interrupt);
    meteor::Aligner aligner(lexicon, interrupt);
    const auto caption = lexicon.read("a dog sits on the sofa ran men");
    const auto reference = lexicon.read("the hound is sitting on the couch run man guy");
    meteor::count(caption, reference, aligner.align(caption, reference));
    meteor::count(reference, caption, aligner.align(reference, caption));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view content(reinterpret_cast<const char *>(data) + 1, size - 1);
    try {
        switch (data[0] % 4) {
            case 0: tokenize(content); break;
            case 1: normalize(content); break;
            case 2: {
                const meteor::Synonyms synonyms(sealed(meteor::synonym_kind, content));
                use(&synonyms, nullptr);
                break;
            }
            default: {
                const meteor::Paraphrases paraphrases(sealed(meteor::paraphrase_kind, content));
                use(nullptr, &paraphrases);
            }
        }
    } catch (const meteor::DamagedIndex &) {
    }
    return 0;
}

// What an alignment is worth: METEOR's parameters, the counts of matched words, and the score of one pair.
#include <algorithm>
#include <cmath>

#include "meteor_align.h"

namespace caplens::meteor {

double Counts::score(const Parameters &parameters) const {
    double alpha = parameters.alpha;
    double precision = caption_matches / caption_length, recall = reference_matches / reference_length;
    double mean = 1.0 / ((1.0 - alpha) / precision + alpha / recall);
    double penalty = parameters.gamma * std::pow(chunks / matched_words, parameters.beta);
    double score = mean * (1.0 - penalty);
    return std::isnan(score) ? 0.0 : std::max(score, 0.0);
}

Counts count(const Sentence &caption, const Sentence &reference, const std::vector<Match> &matches,
             const Parameters &parameters) {
    const double delta = parameters.delta;
    const auto &module_weights = parameters.module_weights;
    std::int32_t tally[2][module_count][2] = {};  // [caption, reference][module][content, function]
    std::int32_t matched[2] = {}, chunks = 0;
    const Match *before = nullptr;
    for (const Match &match : matches) {
        for (std::int32_t i = 0; i < match.other_length; ++i)
            ++tally[0][match.module][caption.words[match.other + i].is_function];
        for (std::int32_t i = 0; i < match.length; ++i)
            ++tally[1][match.module][reference.words[match.start + i].is_function];
        matched[0] += match.other_length;
        matched[1] += match.length;
        bool continues = before && before->start + before->length == match.start &&
                         before->other + before->other_length == match.other;
        chunks += !continues;
        before = &match;
    }
    // In the order in which METEOR adds, so that equal scores are equal to the last bit.
    auto weighted = [&](int side) {
        double sum = 0;
        for (int module = 0; module < module_count; ++module) sum += tally[side][module][0] * module_weights[module] * delta;
        for (int module = 0; module < module_count; ++module)
            sum += tally[side][module][1] * module_weights[module] * (1.0 - delta);
        return sum;
    };
    auto length = [delta](const Sentence &sentence) {
        auto words = static_cast<double>(sentence.size());
        return delta * (words - sentence.function_words) + (1.0 - delta) * sentence.function_words;
    };
    bool is_perfect = matched[0] == static_cast<std::int32_t>(caption.size()) &&
                      matched[1] == static_cast<std::int32_t>(reference.size()) && chunks == 1;
    return {weighted(0),       weighted(1),
            length(caption),   length(reference),
            (matched[0] + matched[1]) / 2.0, is_perfect ? 0.0 : static_cast<double>(chunks)};
}

}  // namespace caplens::meteor

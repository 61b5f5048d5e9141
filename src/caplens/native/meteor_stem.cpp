// The Snowball English (Porter2) stemmer, written from its published description
// (https://snowballstem.org/algorithms/english/stemmer.html) in the state that METEOR 1.5 uses.
#include <algorithm>
#include <span>
#include <unordered_map>

#include "meteor_text.h"

namespace caplens::meteor {

namespace {

using Text = std::u16string;
using View = std::u16string_view;

bool is_vowel(char16_t c) { return View(u"aeiouy").find(c) != View::npos; }

// A suffix and what it turns into.
struct Rule {
    View suffix;
    View by;
};

class Porter {
public:
    explicit Porter(Text text) : word(std::move(text)) {}

    Text run() {
        if (word.size() < 3) return word;
        if (word.front() == u'\'') word.erase(0, 1);
        mark_consonant_y();
        find_regions();
        drop_possessive();
        drop_plural();
        if (!is_finished()) {
            drop_past_and_ing();
            y_to_i();
            shorten_double_suffix();
            shorten_further();
            drop_suffix();
            drop_e_and_l();
        }
        std::replace(word.begin(), word.end(), u'Y', u'y');
        return word;
    }

private:
    Text word;
    std::size_t r1 = 0, r2 = 0;  // where the regions R1 and R2 begin

    // A y at the beginning or after a vowel is a consonant: it is written Y meanwhile.
    void mark_consonant_y() {
        for (std::size_t i = 0; i < word.size(); ++i)
            if (word[i] == u'y' && (i == 0 || is_vowel(word[i - 1]))) word[i] = u'Y';
    }

    // The place after the first consonant that follows a vowel, from `start` on.
    std::size_t after_vowel_consonant(std::size_t start) const {
        std::size_t i = start;
        while (i < word.size() && !is_vowel(word[i])) ++i;
        while (i < word.size() && is_vowel(word[i])) ++i;
        return std::min(i + 1, word.size());
    }

    void find_regions() {
        r1 = after_vowel_consonant(0);
        for (View start : {View(u"gener"), View(u"commun"), View(u"arsen")})
            if (word.starts_with(start)) r1 = start.size();
        r2 = after_vowel_consonant(r1);
    }

    bool ends(View suffix) const { return View(word).ends_with(suffix); }
    std::size_t stem_length(View suffix) const { return word.size() - suffix.size(); }
    bool has_vowel_before(std::size_t end) const { return std::any_of(word.begin(), word.begin() + end, is_vowel); }
    void replace(View suffix, View by) { word.replace(stem_length(suffix), suffix.size(), by); }

    bool ends_short() const {  // in a short syllable
        std::size_t n = word.size();
        if (n == 2) return is_vowel(word[0]) && !is_vowel(word[1]);
        return n > 2 && !is_vowel(word[n - 3]) && is_vowel(word[n - 2]) && !is_vowel(word[n - 1]) &&
               View(u"wxY").find(word[n - 1]) == View::npos;
    }

    // The longest of the suffixes that the word ends in; the lists have longer ones before their own endings.
    const Rule *longest(std::span<const Rule> rules) const {
        const Rule *best = nullptr;
        for (const Rule &rule : rules)
            if (ends(rule.suffix) && (!best || rule.suffix.size() > best->suffix.size())) best = &rule;
        return best;
    }

    void drop_possessive() {  // step 0
        for (View suffix : {View(u"'s'"), View(u"'s"), View(u"'")})
            if (ends(suffix)) return replace(suffix, u"");
    }

    void drop_plural() {  // step 1a
        if (ends(u"sses")) return replace(u"sses", u"ss");
        if (ends(u"ied") || ends(u"ies")) return replace(u"ied", word.size() > 4 ? u"i" : u"ie");
        if (ends(u"us") || ends(u"ss") || !ends(u"s")) return;
        if (word.size() >= 2 && has_vowel_before(word.size() - 2)) replace(u"s", u"");
    }

    bool is_finished() const {
        for (View whole : {View(u"inning"), View(u"outing"), View(u"canning"), View(u"herring"), View(u"earring"),
                           View(u"proceed"), View(u"exceed"), View(u"succeed")})
            if (word == whole) return true;
        return false;
    }

    void drop_past_and_ing() {  // step 1b
        static constexpr Rule rules[] = {{u"eed", u"ee"}, {u"eedly", u"ee"}, {u"ed", u""},
                                         {u"edly", u""},  {u"ing", u""},     {u"ingly", u""}};
        const Rule *rule = longest(rules);
        if (!rule) return;
        if (!rule->by.empty()) {
            if (stem_length(rule->suffix) >= r1) replace(rule->suffix, rule->by);
            return;
        }
        if (!has_vowel_before(stem_length(rule->suffix))) return;
        replace(rule->suffix, u"");
        std::size_t n = word.size();
        if (ends(u"at") || ends(u"bl") || ends(u"iz")) {
            word += u'e';
        } else if (n >= 2 && word[n - 1] == word[n - 2] && View(u"bdfgmnprt").find(word[n - 1]) != View::npos) {
            word.pop_back();
        } else if (n == r1 && ends_short()) {
            word += u'e';
        }
    }

    void y_to_i() {  // step 1c
        std::size_t n = word.size();
        if (n > 2 && (word[n - 1] == u'y' || word[n - 1] == u'Y') && !is_vowel(word[n - 2])) word[n - 1] = u'i';
    }

    void shorten_double_suffix() {  // step 2
        static constexpr Rule rules[] = {
            {u"tional", u"tion"}, {u"enci", u"ence"},    {u"anci", u"ance"},   {u"abli", u"able"},    {u"entli", u"ent"},
            {u"izer", u"ize"},    {u"ization", u"ize"},  {u"ational", u"ate"}, {u"ation", u"ate"},    {u"ator", u"ate"},
            {u"alism", u"al"},    {u"aliti", u"al"},     {u"alli", u"al"},     {u"fulness", u"ful"},  {u"ousli", u"ous"},
            {u"ousness", u"ous"}, {u"iveness", u"ive"},  {u"iviti", u"ive"},   {u"biliti", u"ble"},   {u"bli", u"ble"},
            {u"ogi", u"og"},      {u"fulli", u"ful"},    {u"lessli", u"less"}, {u"li", u""}};
        const Rule *rule = longest(rules);
        if (!rule || stem_length(rule->suffix) < r1) return;
        std::size_t before = stem_length(rule->suffix);
        char16_t last = before > 0 ? word[before - 1] : u'\0';
        if (rule->suffix == u"ogi" && last != u'l') return;
        if (rule->suffix == u"li" && View(u"cdeghkmnrt").find(last) == View::npos) return;
        replace(rule->suffix, rule->by);
    }

    void shorten_further() {  // step 3
        static constexpr Rule rules[] = {{u"tional", u"tion"}, {u"ational", u"ate"}, {u"alize", u"al"},
                                         {u"icate", u"ic"},    {u"iciti", u"ic"},    {u"ical", u"ic"},
                                         {u"ful", u""},        {u"ness", u""},       {u"ative", u""}};
        const Rule *rule = longest(rules);
        if (!rule || stem_length(rule->suffix) < (rule->suffix == u"ative" ? std::max(r1, r2) : r1)) return;
        replace(rule->suffix, rule->by);
    }

    void drop_suffix() {  // step 4
        static constexpr Rule rules[] = {{u"al", u""},   {u"ance", u""}, {u"ence", u""},  {u"er", u""},   {u"ic", u""},
                                         {u"able", u""}, {u"ible", u""}, {u"ant", u""},   {u"ement", u""}, {u"ment", u""},
                                         {u"ent", u""},  {u"ism", u""},  {u"ate", u""},   {u"iti", u""},  {u"ous", u""},
                                         {u"ive", u""},  {u"ize", u""},  {u"ion", u""}};
        const Rule *rule = longest(rules);
        if (!rule || stem_length(rule->suffix) < r2) return;
        std::size_t before = stem_length(rule->suffix);
        if (rule->suffix == u"ion" && (before == 0 || (word[before - 1] != u's' && word[before - 1] != u't'))) return;
        replace(rule->suffix, u"");
    }

    void drop_e_and_l() {  // step 5
        if (word.empty()) return;
        std::size_t before = word.size() - 1;
        if (word.back() == u'e') {
            Text rest = word.substr(0, before);
            std::swap(rest, word);
            bool is_short = ends_short();
            std::swap(rest, word);
            if (before >= r2 || (before >= r1 && !is_short)) word.pop_back();
        } else if (word.back() == u'l' && before >= r2 && before > 0 && word[before - 1] == u'l') {
            word.pop_back();
        }
    }
};

}  // namespace

std::u16string stem(std::u16string word) {
    static const std::unordered_map<View, View> exceptions{
        {u"skis", u"ski"},   {u"skies", u"sky"},     {u"dying", u"die"},   {u"lying", u"lie"},     {u"tying", u"tie"},
        {u"idly", u"idl"},   {u"gently", u"gentl"},  {u"ugly", u"ugli"},   {u"early", u"earli"},   {u"only", u"onli"},
        {u"singly", u"singl"}, {u"sky", u"sky"},     {u"news", u"news"},   {u"howe", u"howe"},     {u"atlas", u"atlas"},
        {u"cosmos", u"cosmos"}, {u"bias", u"bias"},  {u"andes", u"andes"}};
    auto found = exceptions.find(word);
    if (found != exceptions.end()) return Text(found->second);
    return Porter(std::move(word)).run();
}

}  // namespace caplens::meteor

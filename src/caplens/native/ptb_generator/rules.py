"""What the tokenizer of coco-caption takes for one token, as regular rules of our own.

They describe what Stanford's PTBTokenizer 3.4.1 does to text, found by running it (docs/research/tokenizer.md).
The longest match wins, then the earlier rule. A letter outside brackets matches both cases, inside them only itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from automaton import Ranges


@dataclass(frozen=True)
class Rule:
    """A pattern, what must follow it without being taken, what becomes of the text, and how much is given back."""

    action: str
    pattern: str
    follow: str = ""
    give_back: int = 0
    text: str = ""


def character_groups() -> dict[str, list[str]]:
    """The groups of characters.txt: hexadecimal code points or ranges under each name."""
    groups: dict[str, list[str]] = {}
    name = ""
    for line in Path(__file__).with_name("characters.txt").read_text().splitlines():
        if line.startswith(" "):
            groups[name] += line.split()
        else:
            name = line
            groups[name] = []
    return groups


def ranges(items: list[str]) -> Ranges:
    """Each ``first-last`` or single code point as a pair."""
    pairs = (item.split("-") for item in items)
    return tuple((int(pair[0], 16), int(pair[-1], 16)) for pair in pairs)


PATTERNS = {
    # Blank space
    "newline": r"\r|\r?\n|[\u000B\u000C\u0085\u2028\u2029]",
    "space": r"[ \t\u00A0\u2000-\u200A\u3000]",
    "blank": r"{space}|{newline}",
    # Apostrophes and words
    "apostrophe": r"['\u0092\u2019]|&apos;",
    "apostrophe or backquote": r"{apostrophe}|[`\u0091\u2018\u201B]",
    "accented": r"&[aeiouAEIOU](acute|grave|uml);",
    "word letter": r"[{letter}{mark}\u00AD]|{accented}",
    "word tail": r"({word letter}|{digit})*",
    "word": r"{word letter}{word tail}([.!?]{word letter}{word tail})*",
    "letters": r"{word letter}+",
    "n't": r"n{apostrophe or backquote}t",
    "clitic": r"{apostrophe}([msdMSD]|re|ve|ll)",
    "plain": r"[{letter}{digit}]",
    "hyphen": r"[\-_\u058A\u2010\u2011]",
    "elided": r"([dDoOlL]{apostrophe or backquote}{plain})?",
    # Numbers
    "number": r"[\-+]?({digit}+|{digit}*([.:,\u00AD\u066B\u066C]{digit}+)+)",
    "date": r"{digit}{1,2}[\-/]{digit}{1,2}[\-/]{digit}{2,4}",
    "phone gap": r"[\- \u00A0]",
    "phone": (
        r"(\([0-9]{2,3}\)[ \u00A0]?|(\+\+?)?([0-9]{2,4}{phone gap})?[0-9]{2,4}{phone gap})"
        r"[0-9]{3,4}{phone gap}?[0-9]{3,5}"
        r"|((\+\+?)?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}"
    ),
    # Abbreviations
    "month": r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    "day": r"mon|tue|tues|wed|thu|thurs|fri",
    "state": (
        r"ala|ariz|[A]z|[A]rk|calif|colo|conn|ct|dak|[D]el|fla|ga|[I]ll|ind|kans?|ky|[L]a|[M]ass|md|mich|minn|[M]iss|mo|mont"
        r"|neb|nev|okla|[O]re|[P]a|penn|tenn|[T]ex|va|vt|[W]ash|wisc?|wyo"
    ),
    "firm": r"inc|cos?|corp|pp?t[ye]s?|ltd|plc|rt|bancorp|bhd|assn|univ|intl|sys",
    "closing": r"jr|sr|bros|(ed|ph)\.d|esq|blvd|bldg|est|etc|ext|al|rd|seq|sq|tel",
    "ending abbreviation": r"({month}|{day}|{state}|{firm}|{closing})\.",
    "title": (
        r"adj|adm|adv|alex|assoc|asst|attys?|ave|brig|capt|cf|cie|co?mdr|col|cpl|dept|det|drs?|elec|ens|ft|gen|govs?|hon|insp"
        r"|invt|jos|lieut|lt|maj|messrs|mfg|mlle|mme|mrs?|ms|msgr|mt|mtg|natl|pfc|ph|pres|profs?|pvt|reps?|rev|sens?|sfc|sgt"
        r"|spc|ste?|supts?|treas|vs|wm"
    ),
    "before number": r"art|ca|figs?|nos?|op|pp|prop",
    "joined acronym": r"(canada|sino|korean|eu|japan|non)-u\.s|u\.s\.-(u\.k|u\.s\.s\.r)",
    "acronym": r"[A-Za-z](\.[A-Za-z])+|{joined acronym}",
    "sentence opener": (
        r"[A]|[A]bout|[A]ccording|[A]fter|[A]n|[A]s|[A]t|[B]ut|[E]arlier|[H]e|[H]er|[H]ere|[H]owever|[I]f|[I]n|[I]t|[L]ast"
        r"|[M]any|[M]ore|[M]r\.|[M]s\.|[N]ow|[O]nce|[O]ne|[O]ther|[O]ur|[S]he|[S]ince|[S]o|[S]ome|[S]uch|[T]hat|[T]he|[T]heir|[T]hen"
        r"|[T]here|[T]hese|[T]hey|[T]his|[W]e|[W]hat|[W]hen|[W]hile|[Y]et|[Y]ou|{tag}"
    ),
    # Words with an apostrophe of their own
    "apostrophe word": (
        r"{apostrophe}n{apostrophe}?|[lLdDjJ]{apostrophe}|(dunkin|somethin|ol){apostrophe}|{apostrophe}(em|cause|till?)"
        r"|[A-HJ-XZn]{apostrophe or backquote}{letter}{2,}|{apostrophe}[2-9]0s"
        r"|{letter}+[aeiouyAEIOUY]{apostrophe or backquote}[aeiouA-Z]{letter}*"
        r"|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l|o{apostrophe or backquote}o"
    ),
    "hyphenated": r"[A-Za-z0-9][A-Za-z0-9.,\u00AD]*(-([A-Za-z0-9\u00AD]+|{acronym}\.))+",
    "slashed part": r"[A-Za-z0-9]+(-[A-Za-z]+){0,2}",
    # Addresses
    "url end": r"[^ \t\n\f\r\"<>|.!?(){},\-]",
    "url": r"https?://[^ \t\n\f\r\"<>|(){}]+{url end}",
    "likely url": (
        r"(www\.([^ \t\n\f\r\"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}|([^ \t\n\f\r\"`'<>|.!?(){},\--_$]+\.)+(com|net|org|edu))"
        r"(/[^ \t\n\f\r\"<>|()]+{url end})?"
    ),
    "e-mail": (
        r"(<|&lt;)?[a-zA-Z0-9][^ \t\n\f\r\"<>|(){}\u00A0]*@"
        r"([^ \t\n\f\r\"<>|(){}.\u00A0]+\.)*[^ \t\n\f\r\"<>|(){}.\u00A0]+(>|&gt;)?"
    ),
    "file kind": (
        r"bat|bmp|c|class|cgi|cpp|dll|docx?|exe|gif|gz|h|html?|jar|java|jpe?g|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar"
        r"|txt|wav|x|xml|zip"
    ),
    # Markup
    "tag name": r"[A-Za-z][A-Za-z0-9_:.\-]*",
    "tag": (
        r"<([!?][A-Za-z\-][^>\r\n]*|/?{tag name}"
        r"( +({tag name}|{tag name} *= *('[^\r\n']*'|\"[^\r\n\"]*\")))* */? *)>"
    ),
    "eyes": r"[\-\^x=~<>']",
}

RULES = [
    Rule("keep", "cannot", give_back=3),
    Rule("keep", "gonna|gotta|lemme|gimme|wanna", give_back=2),
    Rule("keep", "'tis", give_back=2),
    Rule("keep", "'twas", give_back=3),
    Rule("spaced", "{tag}"),
    Rule("drop", r"&(md|mdash|ndash);|[\u0096\u0097\u2013-\u2015]"),
    Rule("constant", "&amp;", text="&"),
    Rule("keep", r"&(ht|tl|ur|lr|qc|ql|qr|odq|cdq|#[0-9]+);"),
    Rule("word", "{word}", follow="{clitic}"),
    Rule("word", r"[A-Za-z\u00AD]*[A-MO-Za-mo-z]\u00AD*", follow="{n't}"),
    Rule("word", "{word}"),
    Rule("keep", "{apostrophe word}"),
    Rule("keep", "y{apostrophe}", follow="{letter}"),
    Rule("keep", "{url}"),
    Rule("keep", "{likely url}"),
    Rule("keep", "{e-mail}"),
    Rule("keep", "@[a-zA-Z_][a-zA-Z_0-9]*|#{word letter}+"),
    Rule("clitic", "{clitic}", follow="[^A-Za-z]"),
    Rule("clitic", "{n't}"),
    Rule("keep", "{date}"),
    Rule("word", "{number}"),
    Rule("keep", r"[\u207A\u207B\u208A\u208B]?([\u2070\u00B9\u00B2\u00B3\u2074-\u2079]+|[\u2080-\u2089]+)"),
    Rule("spaced", r"({digit}{1,4}[\- \u00A0])?{digit}{1,4}(\\?/|\u2044){digit}{1,4}"),
    Rule("constant", r"\u00BC", text="1/4"),
    Rule("constant", r"\u00BD", text="1/2"),
    Rule("constant", r"\u00BE", text="3/4"),
    Rule("constant", r"\u2153", text="1/3"),
    Rule("constant", r"\u2154", text="2/3"),
    Rule("ampersand", r"-(l|r)(r|c|s)b-|c\.d\.s|pro-|anti-|s(&|&amp;)(p-500|ls)|(cap{apostrophe}n|c{apostrophe}est)"),
    Rule("keep", r"c\+\+|(c|f)#"),
    Rule("keep", r"{slashed part}(\\?/{slashed part}){1,2}"),
    Rule("keep", r"[A-Z]*\$|#"),
    Rule("constant", r"\u00A2", text="cents"),
    Rule("constant", r"\u00A3", text="#"),
    Rule("constant", r"[\u0080\u00A4\u20A0\u20AC]", text="$"),
    Rule("keep", "{ending abbreviation}", follow="[^]{2}"),
    Rule("keep", "{ending abbreviation}"),
    Rule("keep", r"{title}\."),
    Rule("keep", r"{before number}\.", follow="{blank}?{digit}"),
    Rule("keep", r"[A-Za-z]\.", follow="{blank}+{sentence opener}{blank}", give_back=1),
    Rule("keep", r"([A-Za-z]|{acronym})\."),
    Rule("keep", "{joined acronym}", follow="{blank}"),
    Rule("keep", "{apostrophe}[0-9]{2}", follow="{blank}"),
    Rule("keep", r"({word letter}|{digit})+(\.({word letter}|{digit})+)*\.{file kind}", follow="{blank}|[.?!,]"),
    Rule("word", r"{word}\.", follow=r"[,;:\u3001]"),
    Rule("bracketed", "{phone}"),
    Rule("drop", "\"|&[q][u][o][t];|''|'|&[a][p][o][s];"),
    Rule("keep", "&quot;|&apos;"),
    Rule("drop", "'", follow=r"[A-Za-z][^ \t\r\n\u00A0]"),
    Rule("quotes", r"[`\u0091-\u0094\u2018-\u201F\u2039\u203A\u00AB\u00BB]{1,2}"),
    Rule("keep", "<<|>>"),
    Rule("constant", "<|&lt;", text="<"),
    Rule("constant", ">|&gt;", text=">"),
    Rule("constant", r"\{", text="-lcb-"),
    Rule("constant", r"\}", text="-rcb-"),
    Rule("constant", r"\[", text="-lsb-"),
    Rule("constant", r"\]", text="-rsb-"),
    Rule("constant", r"\(", text="-lrb-"),
    Rule("constant", r"\)", text="-rrb-"),
    Rule("drop", "-{1,4}"),
    Rule("keep", "-+"),
    Rule("drop", r"\.{3,5}|(\.[ \u00A0]){2,4}\.|[\u0085\u2026]"),
    Rule("keep", r"@+|#+|_+|\*+|(\\\*){1,3}"),
    Rule("drop", "[,;:.?!]"),
    Rule("keep", "[?!]+"),
    Rule("keep", r"[=/\\|+&@]|{symbol}"),
    Rule("keep", r"{hyphenated}\.", follow=r"[,;:\u3001]"),
    Rule("word", "{hyphenated}"),
    Rule("keep", r"{elided}{plain}+({hyphen}{elided}{plain}+)*\.", follow=r"[,;:\u3001]"),
    Rule("keep", "{elided}{plain}+({hyphen}{elided}{plain}+)*"),
    Rule("ampersand", r"[A-Z]+(([+&]|&amp;)[A-Z]+)+\.", follow=r"[,;:\u3001]"),
    Rule("ampersand", "[A-Z]+(([+&]|&amp;)[A-Z]+)+"),
    Rule("bracketed", r"[<>]?[:;=][\-o*']?[()DPdpO\\{@|\[\]]", follow="[^A-Za-z0-9]"),
    Rule("bracketed", r"{eyes}_{eyes}|\({eyes}[_.]?{eyes}\)|\([\^x=~<>']-[\^x=~<>']\)"),
    Rule("clitic", "{clitic}"),
    Rule("skip", "{space}+|&nbsp;"),
    Rule("line_break", "{newline}"),
    Rule("skip", "[^]"),
]

"""Words that say little: NLTK's English stop words, and those that no reference needs to say."""

STOP_WORDS = frozenset(  # as text: a list of 179 strings is no easier to read
    """
    i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him
    his himself she she's her hers herself it it's its itself they them their theirs themselves what which who
    whom this that that'll these those am is are was were be been being have has had having do does did doing a
    an the and but if or because as until while of at by for with about against between into through during
    before after above below to from up down in out on off over under again further then once here there when
    where why how all any both each few more most other some such no nor not only own same so than too very s t
    can will just don don't should should've now d ll m o re ve y ain aren aren't couldn couldn't didn didn't
    doesn doesn't hadn hadn't hasn hasn't haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't
    shan shan't shouldn shouldn't wasn wasn't weren weren't won won't wouldn wouldn't
    """.split()  # noqa: SIM905
)

# What no reference needs to say for the word to be right; with a tagger most of these are not judged anyway.
NEVER_WRONG = STOP_WORDS | frozenset(
    """
    one near behind beside besides around onto along across toward towards upon within without inside outside among
    amongst amid next via per like another every either neither many much several lot lots also still yet just even
    perhaps maybe really quite rather almost something someone somebody anything nothing everything
    """.split()  # noqa: SIM905
)

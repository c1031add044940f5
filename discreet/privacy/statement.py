"""What a promise means, and its statement for people who decide about the data: plain meaning first, symbols last.

The meaning is told in beliefs and guesses instead of epsilon and delta. Every number in a statement is rounded to the
side on which the sentence stays true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet._common.blocks import Facts, Groups, Heading, paragraphs
from discreet._common.text import LABEL, facts, one_line, paragraph
from discreet.privacy import accounting
from discreet.privacy.relation import Relation, Unit

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, LedgerReceipt, ReleaseRecord
    from discreet.privacy.tradeoffs import TradeOff

PRIORS = (0.5, 0.1, 0.01)  # beliefs before, of which a statement tells the belief after
# The leak of a run whose noise can be drawn again.
SEEDED = (
    "the noise was drawn from a seed or a NumPy generator: whoever knows it can remove the noise, and a second table "
    "fitted in the same way with the same seed gets the same noise"
)

_CAVEAT = (
    "ATTENTION: what follows is true only apart from what stands under 'Not covered' with the word ATTENTION. Through "
    "that, more can be learned."
)

_USED = {
    Relation.REPLACE: "that this person's row was in the table, and not some other row in its place",
    Relation.ZERO_OUT: "that this person's row was in the table, and not left empty",
    Relation.ADD_REMOVE: "that this person's row was in the table",
}
_PERSON_USED = {
    Relation.REPLACE: "that this person's rows were in the table, and not those of somebody else in their place",
    Relation.ZERO_OUT: "that this person's rows were in the table, and not left empty",
    Relation.ADD_REMOVE: "that this person's rows were in the table",
}


@dataclass(frozen=True)
class Meaning:
    """What whoever knows all other rows can come to know about one.

    Attributes
    ----------
    beliefs : tuple of (float, float)
        Beliefs before seeing the result that a certain row was used, and the most that each can become.
    failure : float
        At most this often, the result lets a belief become larger than that.
    guess : float
        Who guesses whether the row was used, having thought it 50 % likely, is right at most this often.
    """

    beliefs: tuple[tuple[float, float], ...]
    failure: float
    guess: float

    @classmethod
    def of(cls, epsilon: float, delta: float, event: Any, relation: Relation) -> Meaning:
        """The meaning of an (epsilon, delta) promise that an event proves."""
        if not math.isfinite(epsilon):
            return cls(tuple((prior, 1.0) for prior in PRIORS), 1.0, 1.0)
        beliefs = tuple((prior, belief_after(prior, epsilon)) for prior in PRIORS)
        from discreet.privacy.tradeoffs import ApproximateTradeOff

        # Both bounds hold: that of the numbers promised, and that of what was really done.
        promised = ApproximateTradeOff(epsilon, delta).accuracy(0.5)
        guess = min(1.0, promised, accounting.guess_accuracy(event, relation))
        return cls(beliefs, accounting.excess_probability(event, epsilon, relation), guess)

    @classmethod
    def of_curve(cls, curve: TradeOff, failure: float | None = None) -> Meaning:
        """The meaning of a trade-off curve; one without a delta needs `failure`, how often a belief may be larger."""
        growth, often = curve.growth_and_failure(failure)
        return cls(tuple((prior, belief_after(prior, growth)) for prior in PRIORS), often, curve.accuracy(0.5))

    def to_dict(self) -> dict[str, Any]:
        """Return the meaning as JSON values."""
        beliefs = [{"before": before, "after_at_most": after} for before, after in self.beliefs]
        return {"beliefs": beliefs, "failure_at_most": self.failure, "guess_at_most": self.guess}


def belief_after(before: float, epsilon: float) -> float:
    """Return the most that a belief can become when its odds grow by at most exp(epsilon): Bayes' theorem."""
    return before / (before + (1.0 - before) * math.exp(min(-epsilon, 700.0)))


def percent_at_most(fraction: float) -> str:
    """A percentage, rounded up; near 100 % with as many digits as tell it from there."""
    left = 100.0 * (1.0 - fraction)
    if left < 1e-10:
        return "practically 100 %"
    digits = max(1, 1 - math.floor(math.log10(left)))
    return f"{math.ceil(fraction * 100.0 * 10**digits) / 10**digits:.{digits}f} %"


def statement_of(guarantee: Guarantee) -> str:
    """The whole statement, in paragraphs with headings."""
    return "\n\n".join(_section(name, paragraphs) for name, paragraphs in sections_of(guarantee).items() if paragraphs)


def blocks_of(guarantee: Guarantee) -> Groups:
    """The same for notebooks, below the numbers that everybody asks for first."""
    told = sections_of(guarantee) | {"Released": []}
    released = [Heading("Released"), Facts(tuple(release_facts(guarantee).items()))] if guarantee.release else []
    groups = [[Heading(name), *paragraphs(texts)] for name, texts in told.items() if texts]
    return [[Facts((("promise", in_numbers(guarantee)),))], *groups[:1], released, *groups[1:]]


def in_numbers(guarantee: Guarantee) -> str:
    """Epsilon, delta and relation, rounded up."""
    if not guarantee.is_private:
        return "none: epsilon is infinite"
    epsilon, delta = rounded_up(guarantee.epsilon, 6), rounded_up(guarantee.delta, 4)
    return f"epsilon = {epsilon}, delta = {delta}, relation {guarantee.relation}"


def sections_of(guarantee: Guarantee) -> dict[str, list[str]]:
    """The headings of a statement and the paragraphs under each; those that begin with "- " are points of a list."""
    private, release = guarantee.is_private, release_facts(guarantee)
    return {
        "What this means for one person": meaning_of(guarantee),
        "Released": [facts(((f"  {name}", text) for name, text in release.items()), LABEL + 2)] if release else [],
        "Covered": _COVERED if private else [],
        "Not covered": _not_covered(guarantee) if private else [],
        "Budget": budget_told(guarantee.release) if private else [],
        "In symbols": _symbols(guarantee),
    }


def in_words(meaning: Meaning, relation: Relation | None = None, unit: Unit = "row") -> list[str]:
    """What whoever knows all others can come to believe about a row or a person, and how often a guess can be right."""
    (_, half), (_, tenth), (_, hundredth) = meaning.beliefs
    told = {
        "row": ("Take any person with one row in the table, and someone who knows all other rows", _USED),
        "person": (
            "Take any person in the table, with all of their rows, however many, and someone who knows all rows of all "
            "other persons",
            _PERSON_USED,
        ),
    }
    who, used = told[unit]
    belief = (
        f"{who}. If that someone thought it "
        f"50 % likely {used[relation or Relation.ADD_REMOVE]}, then this result can make it at most "
        f"{percent_at_most(half)} likely in their eyes. A belief of 10 % can become at most {percent_at_most(tenth)}, "
        f"one of 1 % at most {percent_at_most(hundredth)}."
    )
    failure = f" The chance that the result allows more than that is {_at_most(meaning.failure)}."
    guess = (
        f"If they then had to guess, they would be right at most {percent_at_most(meaning.guess)} of the time; a coin "
        "is right 50 % of the time."
    )
    return [belief + ("" if meaning.failure == 0.0 else failure), guess]


def meaning_of(guarantee: Guarantee) -> list[str]:
    """What a promise means for one person, in paragraphs; the first warns if there are leaks."""
    if not guarantee.is_private:
        return NO_PRIVACY
    holds = (
        "This is so whatever else they know and however they compute, now and later. Nothing that is made of the "
        "result afterwards weakens it."
    )
    rows = None if guarantee.release is None else guarantee.release.rows
    weak = [f"ATTENTION: {reason}" for reason in guarantee.weaknesses(rows)]
    caveat = [_CAVEAT] if guarantee.leaks else []
    return [*caveat, *in_words(guarantee.meaning, guarantee.relation, guarantee.unit), holds, *weak]


def release_facts(guarantee: Guarantee) -> dict[str, str]:
    """Which result, from which table, when, by which software; nothing where that is not known."""
    release = guarantee.release
    if release is None:
        return {}
    day, _, time = release.date.partition("T")
    protected = {"protects": "whole persons, each with all of their rows"} if guarantee.unit == "person" else {}
    told = {
        "result": release.result,
        "table": release.table or "(not named)",
        f"{guarantee.unit}s": (
            "(a stream without end)" if release.rows is None else _ROWS[release.rows_are].format(release.rows)
        ),
        "columns": f"{release.columns:,}",
        "date": f"{day} {time.removesuffix('+00:00')} UTC",
        "software": f"discreet {release.version}",
        "noise": _noise(guarantee),
        **({} if release.invalid_rows == "error" else {"unreadable": UNREADABLE}),
        **protected,
    }
    return {name: one_line(value) for name, value in told.items()}


def _noise(guarantee: Guarantee) -> str:
    if not guarantee.is_private:
        return "none"
    return "from a seed: see below" if SEEDED in guarantee.leaks else "from a secure generator, without a seed"


_ROWS = {
    "exact": "{:,}",
    "estimate": "about {:,} (a public estimate; the exact number is protected)",
    "maximum": "at most {:,} (a stream)",
}

UNREADABLE = "rows that cannot be read count as empty rows, which add nothing"

NO_PRIVACY = [
    "This result was computed without privacy protection. Whoever sees it may learn anything about the people in the "
    "table. It must be guarded as the table is."
]

_COVERED = [
    "Everything that the result took from the rows: of a model its coefficients, its intercept and the ranges and "
    "scales of its columns; of a preprocessing step all that it learned. Also whatever is computed from these later, "
    "such as predictions, figures or other models."
]


def _not_covered(guarantee: Guarantee) -> list[str]:
    """What the promise is not about, the leaks of this very result first."""
    public = "the names of the table and its columns, bounds, classes and all settings"
    if guarantee.relation is not Relation.ADD_REMOVE:
        public = f"the number of {guarantee.unit}s, {public}"
    return [
        *leaks_told(guarantee),
        *(_UNCOUNTED_TRIALS if accounting.has_best_of_trials(guarantee.event) else []),
        *(_public_input(what) for what in guarantee.public_inputs),
        f"- What was declared as public: {public}. Nobody may have looked at the rows to choose them.",
        _SEVERAL_ROWS[guarantee.unit],
        "- The person for whom a prediction is made: the prediction describes that person to whoever sees it.",
        "- What is true of people in general: if a disease is common among smokers, the result may say so, and what it "
        "says about a smoker is nearly the same whether or not that smoker's row was in the table.",
    ]


_SEVERAL_ROWS = {
    "row": "- Persons with several rows: each row is protected on its own, so such a person is protected less.",
    "person": "- Persons whose rows have several ids: the rows of each id are protected on their own. People who are "
    "only told about in the rows of others, too, are not protected by this promise.",
}

_UNCOUNTED_TRIALS = [
    "- How many models the search tried, and what would tell it, such as the time that it took or a ledger's times of "
    "reservation and commit: of all trials only the best one is released, and their number must not become known."
]


def _public_input(what: str) -> str:
    return (
        f"- {one_line(what).capitalize()}: taken as public. People whose data went into it are not protected by this "
        "promise. If it was computed from rows of this table without privacy, the promise does not hold for those rows."
    )


def leaks_told(guarantee: Guarantee) -> list[str]:
    """What was read from the rows outside the promise, one point of a list each."""
    return [_leak(leak) for leak in guarantee.leaks]


def _leak(leak: str) -> str:
    if leak == SEEDED:
        return f"- ATTENTION, the promise does not hold against everybody: {leak}."
    if leak.endswith("."):  # a sentence of its own
        return f"- ATTENTION: {one_line(leak)}"
    return f"- ATTENTION: {one_line(leak)} were read from the rows without noise, and the promise does not cover them."


def budget_told(release: ReleaseRecord | None) -> list[str]:
    """What the ledger said about a release when it was booked; nothing where the release is not known."""
    if release is None:
        return []
    if release.ledger is None:
        return [
            "No ledger was used. Other results from the same table lower the protection further, and nobody has "
            "counted them."
        ]
    return [_booked(release.ledger)]


def _booked(receipt: LedgerReceipt) -> str:
    entries = "entry " if len(receipt.entries) == 1 else "entries "
    left = max(0.0, receipt.epsilon - receipt.spent)
    return (
        f"Booked in the ledger of data set {receipt.dataset!r} as {entries}{' and '.join(map(str, receipt.entries))} "
        f"(hash {one_line(receipt.hash[:16])}). All results booked there until then, this one included, have together "
        f"spent epsilon {rounded_up(receipt.spent, 4)} of {receipt.epsilon:.6g} at delta {receipt.delta:.3g}; about "
        f"{left:.3g} was left. Results that are not in the ledger are not counted."
    )


def _symbols(guarantee: Guarantee) -> list[str]:
    if not guarantee.is_private:
        return ["epsilon is infinite."]
    epsilon, delta = rounded_up(guarantee.epsilon, 6), rounded_up(guarantee.delta, 4)
    explanation = guarantee.relation.explanation_for(guarantee.unit)
    return [
        f"The result is ({epsilon}, {delta})-differentially private, where {explanation} (relation "
        f"{str(guarantee.relation)!r}): for every set S of possible results and every two neighbouring tables A and B, "
        f"P[result from A in S] <= exp({epsilon}) * P[result from B in S] + {delta}."
    ]


def _section(name: str, paragraphs: list[str]) -> str:
    """A heading, and under it what belongs there, in lines of bounded width; lists keep their form."""
    wrapped = [
        text if text.startswith("  ") else paragraph(text, "  ", "    " if text.startswith("- ") else "  ")
        for text in paragraphs
    ]
    return "\n".join([name, *wrapped])


def _at_most(probability: float) -> str:
    """A small probability in words, rounded up."""
    if probability >= 0.01:
        return f"at most {percent_at_most(probability)}"
    if probability < 1e-15:
        return "less than 1 in 10^15"
    among = 1.0 / probability
    size = 10.0 ** (math.floor(math.log10(among)) - 1)
    return f"at most 1 in {math.floor(among / size) * size:,.0f}"


def rounded_up(number: float, digits: int) -> str:
    """So many digits, rounded up."""
    if number <= 0.0:
        return "0"
    size = math.floor(math.log10(number)) + 1 - digits
    return f"{math.ceil(Fraction(number) / Fraction(10) ** size - Fraction(1, 10**6)) * 10.0**size:.{digits}g}"

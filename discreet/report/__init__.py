"""The report on a model: one page that a person who is responsible for the data can read, check and sign.

How to use it: docs/report.md. `write` gathers what is told, `sections` say it in `blocks`, which templates write down,
`pictures` draws.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)

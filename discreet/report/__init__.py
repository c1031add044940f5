"""The report on a model: one page that a person who is responsible for the data can read, check and sign.

How to use it: docs/report.md. `material` gathers what is told, `sections` say it in `blocks`, `html` and `markdown`
write these down, `svg` draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {"write_report": "write", "report_of": "write", "Report": "blocks"}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.report.blocks import Report as Report
    from discreet.report.write import report_of as report_of
    from discreet.report.write import write_report as write_report

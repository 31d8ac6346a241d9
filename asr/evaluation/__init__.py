"""Word, character and sentence error rates that can be cited. Imports no torch."""

from asr.evaluation.bootstrap import Interval
from asr.evaluation.counts import Counts, Step
from asr.evaluation.formats import Transcripts, read
from asr.evaluation.onsets import OnsetReport, onset_errors
from asr.evaluation.report import Report, Summary, UtteranceScore
from asr.evaluation.scoring import score
from asr.evaluation.significance import Comparison, MatchedPairs, compare

__all__ = [
    "Comparison",
    "Counts",
    "Interval",
    "MatchedPairs",
    "OnsetReport",
    "Report",
    "Step",
    "Summary",
    "Transcripts",
    "UtteranceScore",
    "compare",
    "onset_errors",
    "read",
    "score",
]

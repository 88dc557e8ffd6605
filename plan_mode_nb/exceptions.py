"""The error tree. One class for each thing a caller can do about it (never one per place that raises).

PlanModeError              anything this package raises on purpose; the message is one sentence for a person
├── LogError               the log was refused; nothing was changed
│   ├── FormatError        a line, header or shape is not of the format (or of a newer one): the source stays untouched
│   └── InvariantError     events are well-formed but break a rule of the log (order, enclosure, payload)
├── StoreError             a file or folder could not be read or written
├── ConfigError            a setting is missing, unknown or of the wrong kind; names the key and where it goes
├── ModelError             a model could not be chosen, reached or understood; carries a code
├── CommandError           a magic or command was used in a way that cannot work; says what to type instead
├── HostError              this place cannot run a turn now (a turn in a turn, a subshell, %%capture)
└── ReplayError            a replay differs from its recording; carries the first difference
"""

from __future__ import annotations

_QUOTED = 80


def quoted(value: object) -> str:
    """A value from outside as a sentence may hold it: on one line, and bounded, because a damaged log can hold anything."""
    return bounded(" ".join(str(value).split()) if isinstance(value, Exception) else repr(value))


def bounded(text: str) -> str:
    """A text that is short enough for a sentence to hold."""
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"


class PlanModeError(Exception):
    """Base class. ``str(error)`` is one sentence that says what to do next."""


class LogError(PlanModeError):
    """A log was refused; neither the log nor its source was changed."""


class FormatError(LogError):
    """Not this format, a newer one, or damaged. ``line`` is the 1-based line of the source where known."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class InvariantError(LogError):
    """A rule of the log is broken by the event at ``seq`` (None: by the whole)."""

    def __init__(self, message: str, *, seq: int | None = None) -> None:
        super().__init__(message)
        self.seq = seq


class StoreError(PlanModeError):
    """A file or folder could not be read or written; what it held is unchanged."""


class ConfigError(PlanModeError):
    """A setting is missing, unknown or of the wrong kind."""


class ModelError(PlanModeError):
    """A model could not be chosen, reached or understood.

    ``code`` is dsh's ``LlmFailure`` code (``CONFIG``, ``AUTH``, ``RATE_LIMIT``, ``QUOTA``, ``SERVER``, ``TIMEOUT``, ``TRANSPORT``,
    ``BAD_REQUEST``, ``CONTEXT_OVERFLOW``, ``CONTENT_FILTER``, ``EMPTY_RESPONSE``, ``ABORTED``, ``UNKNOWN``); ``retry_after_ms`` as the
    provider asked.
    """

    def __init__(self, message: str, *, code: str = "UNKNOWN", status: int | None = None, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after_ms = retry_after_ms


class CommandError(PlanModeError):
    """A magic or command was used in a way that cannot work."""


class HostError(PlanModeError):
    """This place cannot run a turn now."""


class TurnError(PlanModeError):
    """A turn ended without completing (not by being stopped). Its log is closed; the message says what to do next."""


class ReplayError(PlanModeError):
    """A replay differs from its recording. ``position`` names the first difference in words a person can act on."""

    def __init__(self, message: str, *, position: str = "") -> None:
        super().__init__(message)
        self.position = position

"""What stops a training that the program is not to blame for."""

from __future__ import annotations


class TrainingError(Exception):
    """str() is one sentence for the person who waits: which file or option, what is wrong, what helps."""


def reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

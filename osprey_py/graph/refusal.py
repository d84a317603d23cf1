"""What a device cannot do, said at the launch.

Comes in: a `DeviceError` of a backend and the launch it is about. Goes out: the diagnostic (spec/gpu-surface, S2.10).
"""

from __future__ import annotations

from osprey_py.backends.protocol import DeviceError
from osprey_py.source.diagnostic import Diagnostic, OspreyError
from osprey_py.source.span import Span

_HELP = "without `--device` it runs on the host"


def refusal(error: DeviceError, device: str, span: Span) -> OspreyError:
    """The launch at the span is refused, or the device failed at it."""
    title = f"device `{error.device or device}`: {error.text}"
    return OspreyError([Diagnostic("E0507", title, span, "this launch", help=error.help or _HELP)])

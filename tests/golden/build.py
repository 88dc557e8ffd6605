"""Tell the stories again: ``cd tests && python -m golden.build [NAME…]``. Each notebook is told by a real kernel, not typed."""

from __future__ import annotations

import sys

from .stories import tell_all
from .telling import here

if __name__ == "__main__":
    tell_all(sys.argv[1:], here())

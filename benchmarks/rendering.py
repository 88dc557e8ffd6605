"""``render_ms``: a plan of 2 kB, 200 kB and 1 MB as the bundle that stays in the notebook. Each plan is rendered for the first time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.measuring import interleaved, rounded
from plan_mode_nb.render.cards import plan_card

SIZES = (2_000, 200_000, 1_000_000)
PART = """## Step {number}

Read `table_{number}` and **join** it on [the key](https://example.org/keys):

1. Look for duplicates.
2. Keep the *last* one.

| column | type | missing |
|---|---|---|
| id | int64 | 0 |
| name | object | 12 |

```python
frame = frame.drop_duplicates("id", keep="last")
```

"""


def a_plan(size: int, number: int) -> str:
    """A plan of this many bytes, another one for each number."""
    parts = [PART.format(number=number) for number in range(size // len(PART) + 1)]
    return (f"# Clean the tables, {number}\n\n" + "".join(parts))[:size]


def measure() -> dict[str, Any]:
    """``{"render_ms": {bytes: ms}}``."""
    numbers = itertools.count()
    _render(2_000, numbers)
    seconds = interleaved([partial(_render, size, numbers) for size in SIZES], 5)
    return {"render_ms": {str(size): rounded(each * 1e3) for size, each in zip(SIZES, seconds, strict=True)}}


def _render(size: int, numbers: Iterator[int]) -> None:
    plan_card(a_plan(size, next(numbers)), "approved")

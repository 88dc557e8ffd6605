"""The page and the kernel read one log in two languages: they must come to the same."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from applications import EXTENSION
from driver import NotebookPage

from plan_mode_nb.document.chain import chained
from plan_mode_nb.document.chunks import chunk_key, chunked, read_metadata
from plan_mode_nb.folds.plan import fold_plan_state
from plan_mode_nb.log.codec import decode, encode
from plan_mode_nb.log.events import Event

pytestmark = pytest.mark.browser

IMPORT = "const module = name => import(`/lab/extensions/plan-mode-nb/lib/${name}.js`);"


def _plan_events(chance: random.Random) -> list[Event]:
    drafts: list[tuple[str, Any]] = []
    for number in range(chance.randrange(12)):
        kind = chance.choice(["mode", "selected", "run", "done", "done", "other"])
        flag, id = chance.random() < 0.5, f"c{chance.randrange(3)}"
        drafts.append(
            {
                "mode": ("plan/mode", {"active": flag}),
                "selected": ("plan/selected", {"active": flag, "narrate": flag}),
                "run": (
                    "command/run",
                    {
                        "commandId": id,
                        "name": chance.choice(["plan", "plan", "compact"]),
                        "args": chance.choice(["", "off", " OFF\n", "on", "off it"]),
                        "source": {},
                    },
                ),
                "done": ("command/done", {"commandId": id, "kind": chance.choice(["success", "error"]), "text": ""}),
                "other": ("todo/write", {"todos": [{"content": f'"plan/mode" {number}', "status": "pending"}]}),
            }[kind]
        )
    return [Event(type, seq, 1, data) for seq, (type, data) in enumerate(drafts)]


def test_plan_mode_folds_to_the_same_in_page_and_kernel(shared: NotebookPage) -> None:
    chance = random.Random(7)
    logs = [_plan_events(chance) for _ in range(400)]
    folded = shared.js(
        f"""async logs => {{
          {IMPORT}
          const {{ foldPlan }} = await module('log');
          return logs.map(lines => {{ const {{ active, pending }} = foldPlan(lines); return [active, pending]; }});
        }}""",
        [[encode(event) for event in log] for log in logs],
    )
    assert folded == [[(state := fold_plan_state(log)).active, state.pending] for log in logs]
    assert {tuple(each) for each in folded} == {(False, None), (False, True), (True, None), (True, False)}


def test_chunks_and_chained_hash_are_the_same_in_page_and_kernel(shared: NotebookPage) -> None:
    chance = random.Random(11)
    alphabet = ["x", "é", "計", "😀", "\u2028", '"', "\\", "\n"]
    texts = ["".join(chance.choices(alphabet, k=chance.randrange(1500))) for _ in range(120)]
    lines = [encode(Event("todo/write", seq, 1, {"todos": [{"content": text, "status": "pending"}]})) for seq, text in enumerate(texts)]
    written = shared.js(
        f"""async ([lines, prev]) => {{
          {IMPORT}
          const {{ NotebookLog }} = await module('metadata');
          const store = new Map();
          const log = new NotebookLog({{ get: key => structuredClone(store.get(key)), set: (key, value) => {{ store.set(key, value); }} }});
          let start = 0, hash = prev;
          for (const size of [1, 7, 40, 72]) {{
            const header = {{ version: 0, id: 's', createdAt: 1, delegationDepth: 0 }};
            const append = {{ session: 's', start, events: lines.slice(start, start + size), prev: hash, header, agents: {{ main: 's' }} }};
            const answer = log.append(append);
            if (!('length' in answer)) return answer;
            start = answer.length;
            hash = log.of('s').chained(start);
          }}
          return {{ metadata: Object.fromEntries(store), hash }};
        }}""",
        [lines, chained("s", [])],
    )
    assert written["hash"] == chained("s", lines)
    document = read_metadata(written["metadata"])
    assert document.problems == ()
    assert document.sessions["s"].lines == lines
    assert document.agents == {"main": "s"}
    chunks = {key: value for key, value in written["metadata"].items() if key.startswith("plan_mode_nb/s/")}
    assert chunks == {chunk_key("s", start): chunk for start, chunk in chunked(lines)}
    assert decode(lines[5]).data == {"todos": [{"content": texts[5], "status": "pending"}]}


def test_the_installed_lab_extension_is_the_one_in_this_tree() -> None:
    installed = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "plan-mode-nb"
    files = {path.relative_to(EXTENSION): path.read_text() for path in EXTENSION.rglob("*") if path.is_file()}
    assert files, "the lab extension is missing"
    stale = [str(name) for name, text in files.items() if not (installed / name).is_file() or (installed / name).read_text() != text]
    assert stale == [], "install the package again: its lab extension is an older copy"

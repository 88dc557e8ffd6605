"""Hostile markdown in a real browser: inert in static outputs, untrusted and trusted, in a live review, and in nbconvert's HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
import pytest
from applications import JupyterServer
from driver import NotebookPage
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect
from probes import AWAY, HIT, PROBES, bundles

pytestmark = pytest.mark.browser

NAMES = list(PROBES)
AT_ONCE = 20
"""Probes in one cell: Lab trims a cell to fifty outputs."""
COUNT_HITS = "window.hits = 0; window.hit = () => { window.hits += 1; };"
AUDIT = """(nodes, { ends, fromMarkdown }) => {
  const kinds = 'script style link meta base iframe frame object embed svg math form img picture video audio source textarea '
    + 'select template noscript button dialog title xmp plaintext marquee body';
  const mathematics = fromMarkdown ? '' : ',mjx-container,.MathJax,.MathJax_Display';
  const schemes = /^(https?|mailto|file):/i, link = /^(https?:\\/\\/[^/]|mailto:[^?]|#)/i;
  const loads = ['src', 'srcset', 'background', 'poster', 'formaction', 'action', 'ping', 'srcdoc', 'data', 'xlink:href'];
  const length = '(0|[01]\\\\.\\\\d+em|1em)', style = '(text-align: ?(left|right|center)|white-space: ?pre-wrap|list-style-type: ?none'
    + `|word-break: ?normal|overflow-wrap: ?anywhere|margin: ?${length}( ${length}){2,3})`;
  const styles = new RegExp(`^${style}(; ?${style})*;?$`);
  return nodes.map(node => {
    const problems = [];
    for (const details of node.querySelectorAll('details')) details.open = true;
    for (const found of node.querySelectorAll(kinds.split(' ').join(',') + mathematics))
      if (!fromMarkdown || !found.closest('mjx-container')) problems.push(found.outerHTML.slice(0, 120));
    for (const element of node.querySelectorAll('*')) {
      if (fromMarkdown && element.closest('mjx-container')) continue;
      for (const { name, value } of element.attributes) {
        const isBad = name.startsWith('on') || loads.includes(name) || name.startsWith('data-command') || name === 'name'
          || (name === 'id' && !fromMarkdown) || (name === 'style' && !styles.test(value));
        if (isBad) problems.push(`${element.tagName} ${name}=${value}`);
      }
      if (element.tagName === 'A' && element.hasAttribute('href') && !(fromMarkdown ? schemes : link).test(element.href))
        problems.push(`link to ${element.getAttribute('href')}`);
      for (const type of ['mouseover', 'mouseenter', 'focus', 'toggle', 'load', 'error'])
        element.dispatchEvent(new Event(type));
    }
    const seen = node.innerText.split('END').length - 1;
    if (seen !== ends) problems.push(`END is seen ${seen} times, not ${ends}: ${node.innerText.slice(-200)}`);
    const shown = getComputedStyle(node);
    if (shown.display === 'none' || shown.visibility !== 'visible') problems.push('hidden');
    return problems;
  });
}"""


@dataclass
class Findings:
    """What one way of showing the probes came to: problems by probe, scripts that ran, and where requests went."""

    problems: dict[str, list[str]] = field(default_factory=dict)
    hits: int = 0
    away: list[str] = field(default_factory=list)


@dataclass
class Watched:
    """A browser context that counts scripts and lets nothing leave this machine."""

    context: BrowserContext
    away: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.add_init_script(COUNT_HITS)
        self.context.route("**/*", self._route)

    def _route(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            self.away.append(route.request.url)
            route.abort()


def hits(page: Page) -> int:
    """Scripts that ran in the page or in any frame of it."""
    assert page.evaluate("() => window.hits") is not None
    return sum(int(frame.evaluate("() => window.hits ?? 0")) for frame in page.frames)


def groups(size: int) -> list[list[str]]:
    return [NAMES[start : start + size] for start in range(0, len(NAMES), size)]


def audit(located: Locator, names: list[str], ends: int, *, markdown: bool = False) -> dict[str, list[str]]:
    """The problems of each of the elements, which stand for the probes in order."""
    expect(located).to_have_count(len(names))
    # Lab renders markdown a moment later, each by itself, and paints a cell that it has scrolled to a moment after that.
    expect(located).to_contain_text([re.compile(r"\S")] * len(names), use_inner_text=True)
    found = located.evaluate_all(AUDIT, {"ends": ends, "fromMarkdown": markdown})
    return {name: problems for name, problems in zip(names, found, strict=True) if problems}


def merge(into: dict[str, list[str]], found: dict[str, list[str]]) -> None:
    for name, problems in found.items():
        into.setdefault(name, []).extend(problems)


def notebook_of(outputs: list[list[dict[str, Any]]]) -> nbformat.NotebookNode:
    """A notebook with these outputs, one cell for each list."""
    notebook = nbformat.v4.new_notebook()
    for cell in outputs:
        shown = [nbformat.v4.new_output("display_data", data=data) for data in cell]
        notebook.cells.append(nbformat.v4.new_code_cell("%agent go", outputs=shown, execution_count=1))
    return notebook


@pytest.fixture(scope="module")
def watched(browser: Browser) -> Iterator[Callable[[], Watched]]:
    opened: list[Watched] = []

    def watch() -> Watched:
        opened.append(Watched(browser.new_context(viewport={"width": 1200, "height": 900})))
        return opened[-1]

    yield watch
    for each in opened:
        each.context.close()


@dataclass
class Lab:
    """A watched page of JupyterLab, in which one notebook is opened after another."""

    server: JupyterServer
    watched: Watched
    page: NotebookPage

    def findings(self, problems: dict[str, list[str]]) -> Findings:
        """Those of the notebook that was shown last; the next one starts anew."""
        found = Findings(problems, hits(self.page.page), list(self.watched.away))
        self.page.js("() => { window.hits = 0; }")
        self.watched.away.clear()
        return found


def saved_outputs(lab: Lab, *, trust: bool) -> Findings:
    """The probes as a saved notebook has them, opened in Lab: each as HTML, and as markdown alone."""
    server, page = lab.server, lab.page
    name = f"hostile-{'trusted' if trust else 'untrusted'}.ipynb"
    server.write(name)
    notebook = nbformat.read(server.root / name, as_version=4)
    notebook.cells = notebook_of([[bundles(each)[form] for each in group] for group in groups(AT_ONCE) for form in (0, 1)]).cells
    nbformat.write(notebook, server.root / name)
    if trust:
        NotebookNotary(data_dir=str(server.root.parent / "data")).sign(nbformat.read(server.root / name, as_version=4))
    page.show(name)
    page.until("wanted => panel.content.widgets.every(cell => cell.model.trusted === wanted)", arg=trust)
    found: dict[str, list[str]] = {}
    for index, group in enumerate(groups(AT_ONCE)):
        for form in (0, 1):
            cell = 2 * index + form
            page.js("index => panel.content.scrollToItem(index, 'start')", cell)
            kind = ".jp-RenderedMarkdown" if form else ".jp-RenderedHTML"
            outputs = page.page.locator(f".jp-Cell[data-windowed-list-index='{cell}'] .jp-OutputArea-output{kind}")
            merge(found, audit(outputs, group, 5, markdown=bool(form)))
    return lab.findings(found)


def live_reviews(lab: Lab) -> Findings:
    """The probes in review cards that wait, as a plan and as changes."""
    page, found = lab.page, dict[str, list[str]]()
    lab.server.write("hostile-live.ipynb", "")
    page.show("hostile-live.ipynb")
    page.run("from probes import *; names = list(PROBES)")
    for index, group in enumerate(groups(AT_ONCE)):
        page.run_cell(0, f"show_reviews(names[{index * AT_ONCE}:{(index + 1) * AT_ONCE}])")
        page.wait_cell(0)
        cards = page.page.locator(".pmnb-card")
        expect(cards).to_have_count(len(group))
        titles = page.page.locator(".pmnb-card h3")
        merge(found, audit(titles, group, 0))
        merge(found, audit(page.page.locator(".pmnb-card .pmnb-plan"), group, 1))
        page.js("() => document.querySelectorAll('.pmnb-views button:last-child').forEach(button => button.click())")
        merge(found, audit(page.page.locator(".pmnb-card .pmnb-plan[aria-label=Changes]"), group, 1))
    return lab.findings(found)


def exported(folder: Path, watched: Watched, outputs: list[list[dict[str, Any]]], name: str) -> Page:
    """nbconvert's HTML of a notebook with these outputs, opened from a file."""
    html, _ = HTMLExporter().from_notebook_node(notebook_of(outputs))
    path = folder / f"{name}.html"
    path.write_text(html, encoding="utf-8")
    page = watched.context.new_page()
    page.goto(path.as_uri(), wait_until="load")
    return page


def export(folder: Path, watch: Callable[[], Watched]) -> Findings:
    """The probes in nbconvert's HTML. The page itself loads its own scripts from elsewhere; an innocent notebook says which."""
    innocent, watched, findings = watch(), watch(), Findings()
    exported(folder, innocent, [[{"text/plain": "1"}]], "innocent")
    page = exported(folder, watched, [[bundles(name)[form] for name in NAMES] for form in (0, 1)], "hostile")
    cells = page.locator(".jp-Cell")
    merge(findings.problems, audit(cells.nth(0).locator(".jp-RenderedHTML"), NAMES, 5))
    merge(findings.problems, audit(cells.nth(1).locator(".jp-RenderedMarkdown"), NAMES, 5, markdown=True))
    findings.hits, findings.away = hits(page), sorted(set(watched.away) - set(innocent.away))
    return findings


@pytest.fixture(scope="module")
def lab(server: JupyterServer, watched: Callable[[], Watched]) -> Lab:
    server.write("innocent.ipynb")
    watching = watched()
    return Lab(server, watching, NotebookPage(watching.context, server, "innocent.ipynb"))


@pytest.fixture(scope="module", params=["untrusted notebook", "trusted notebook", "live review", "nbconvert"])
def findings(request: pytest.FixtureRequest, lab: Lab, watched: Any, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """All probes, shown one way."""
    match request.param:
        case "untrusted notebook":
            return saved_outputs(lab, trust=False)
        case "trusted notebook":
            return saved_outputs(lab, trust=True)
        case "live review":
            return live_reviews(lab)
        case _:
            return export(tmp_path_factory.mktemp("exported"), watched)


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_is_inert_and_hides_nothing_of_what_follows_it(findings: Findings, name: str) -> None:
    """No element, attribute, link or style that acts or loads; no mathematics; every line behind it is on the page."""
    assert findings.problems.get(name, []) == []


def test_no_script_ran_and_nothing_was_loaded(findings: Findings) -> None:
    """Whatever was opened, pointed at or focused."""
    assert findings.hits == 0
    assert findings.away == []


def test_the_plain_text_holds_the_whole_plan() -> None:
    """Markdown and HTML may show less; the plain text never does."""
    from plan_mode_nb.plan.visible import visible
    from plan_mode_nb.render.cards import plan_card

    for probe in PROBES.values():
        plan = f"# Plan\n\n{probe}\n\nEND"
        assert visible(plan) in plan_card(plan, "approved")["text/plain"]


def test_an_unsafe_output_would_be_noticed(watched: Callable[[], Watched], tmp_path: Path) -> None:
    """The same page with raw HTML runs the script, goes away, and hides what follows."""
    open_page = watched()
    raw = f"<img src=x onerror={HIT}><img src={AWAY}/pixel.png><a href='javascript:{HIT}'>x</a><div style='position:fixed'>y</div>END"
    hidden = "END<!-- END"
    page = exported(tmp_path, open_page, [[{"text/html": raw}, {"text/html": hidden}]], "unsafe")
    found = audit(page.locator(".jp-RenderedHTML").first, ["raw"], 1)
    assert len(found["raw"]) >= 5
    page.wait_for_function("() => window.hits > 0")
    assert f"{AWAY}/pixel.png" in open_page.away

"""Whatever a model writes, rendering emits an allow-list of tags, attributes and schemes, and loads nothing (cases 41 and 43)."""

from __future__ import annotations

import pytest
from html_audit import audit

from plan_mode_nb.render.markdown import to_html

PROBES = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src='x'/onerror=alert(1)//",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<style>* { display: none }</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<iframe src=https://evil.example></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=x.swf></object>",
    "<embed src=x.swf>",
    "<form action=https://evil.example><input name=a><button>Approve</button></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "<a href=javascript:alert(1)>x</a>",
    "<button data-commandlinker-command='kernelmenu:shutdown'>Approve</button>",
    "<!-- a comment --> <!-->",
    "<![CDATA[ <script>alert(1)</script> ]]>",
    "<?php echo 1 ?>",
    "<!DOCTYPE html>",
    "<video src=https://evil.example/x.mp4 autoplay></video>",
    "<marquee>x</marquee><blink>y</blink>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](  javascript:alert(1)  )",
    "[x](<javascript:alert(1)>)",
    "[x](java&#115;cript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#106;&#97;vascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](javascript:alert&lpar;1&rpar;)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](data:image/svg+xml,<svg/onload=alert(1)>)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/path)",
    "[x](\\\\evil.example\\share)",
    "[x](blob:https://evil.example/1)",
    "[x](https:javascript:alert(1))",
    "[x](http://a.example 'onmouseover=\"alert(1)\"')",
    '[x](http://a.example "\\" onmouseover=\\"alert(1)")',
    '[x](http://a.example"onmouseover="alert(1))',
    "[x]\n\n[x]: javascript:alert(1)",
    "[x][y]\n\n[y]: <data:text/html,x> 'title\"><script>'",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "<vbscript:x>",
    "javascript:alert(1) data:text/html,x ftp://a.example",
    "![x](https://evil.example/pixel.png)",
    "![x](data:image/png;base64,AAAA)",
    "![x](javascript:alert(1))",
    "![<img src=x onerror=alert(1)>](https://a.example/x.png '\"><script>')",
    "![x][y]\n\n[y]: https://evil.example/pixel.png",
    "[![x](https://evil.example/pixel.png)](https://a.example)",
    "[![x](y.png)](javascript:alert(1))",
    "![[x](http://a.example)](http://b.example)",
    "|a|\n|-|\n|<script>alert(1)</script>|\n|[x](javascript:alert(1))|\n|![x](https://evil.example/p.png)|",
    "# <img src=x onerror=alert(1)> [x](javascript:alert(1))",
    '```"><script>alert(1)</script>\nx\n```',
    "```html onload=alert(1)\n<script>alert(1)</script>\n```",
    '``` python"onmouseover="alert(1)\nx\n```',
    "~~~<img src=x onerror=alert(1)>\nx\n~~~",
    "`<script>alert(1)</script>`",
    "    <script>alert(1)</script>",
    "- [ ] <input onfocus=alert(1) autofocus>",
    "- [x] [x](javascript:alert(1))",
    "> <script>alert(1)</script>",
    "$$\\href{javascript:alert(1)}{x}$$ \\(\\unicode{x}\\)",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
    "<a@evil.example?subject=x> <mailto:a@b.example?bcc=c>",
    "[x](mailto:?bcc=c@d.example)",
    'http://a.example/"onmouseover="alert(1)',
    '<http://a.example/">',
    "[x](http:///evil)",
    '[x](#"><script>)',
]


@pytest.mark.parametrize("probe", PROBES)
def test_only_allowed_html_comes_out(probe: str) -> None:
    for text in (probe, f"# Plan\n\n{probe}\n\nend", f"- {probe}", f"> {probe}", f"|a|\n|-|\n|{probe}|"):
        assert audit(to_html(text)).problems == []


@pytest.mark.parametrize("probe", PROBES)
def test_nothing_is_fetched_by_looking(probe: str) -> None:
    found = audit(to_html(probe))
    assert not {"img", "script", "style", "link", "iframe", "video", "object", "embed"} & set(found.tags)


@pytest.mark.parametrize("probe", [probe for probe in PROBES if "javascript" in probe.lower()])
def test_a_dangerous_destination_is_never_a_link(probe: str) -> None:
    assert not [link for link in audit(to_html(probe)).links if "javascript" in link.lower() and not link.startswith(("http", "#"))]


def test_there_are_many_probes_and_no_two_are_alike() -> None:
    assert len(set(PROBES)) == len(PROBES) >= 45


PATHOLOGICAL = {
    "brackets": "[" * 50_000,
    "image brackets": "![[" * 20_000,
    "emphasis": "*a " * 40_000,
    "stars": "*" * 100_000,
    "tildes": "~~" * 40_000,
    "backticks of every length": "".join("`" * n + " " for n in range(1, 600)),
    "quotes": "> " * 20_000 + "x",
    "lists": "- " * 20_000,
    "list in lines": "1. a\n" * 20_000,
    "wide table": "|a" * 20_000 + "|\n" + "|-" * 20_000 + "|\n" + "|b|\n" * 100,
    "definitions": "[a]: b\n" * 20_000,
    "references": "[a][b]" * 20_000,
    "autolinks": "<http://" * 20_000,
    "bare links": "http://a" * 20_000,
    "hosts": "https://" + "a." * 30_000,
    "parentheses": "[x](" + "(" * 50_000,
    "entities": "&#x202e;" * 20_000,
    "marks of one line": "\u200f" * 100_000,
    "joiners": "\u200d" * 100_000,
    "fences": "```py\nx = 1\n```\n" * 3_000,
    "unknown languages": "".join(f"```l{n}\nx\n```\n" for n in range(3_000)),
    "one long fence": "```python\n" + "(" * 100_000 + "\n```",
    "hard breaks": "a\\\n" * 40_000,
    "tabs": "\t" * 50_000 + "x",
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL)
def test_pathological_input_still_gives_balanced_html(text: str) -> None:
    assert audit(to_html(text)).problems == []

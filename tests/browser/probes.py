"""Markdown that tries to do something: run a script, load something, restyle the page, or hide what follows it.

Each is put into plans, answers, feedback and titles. ``HIT`` runs where a script would; ``AWAY`` is where a request would go.
Kernels of the browser tests import this module too.
"""

from __future__ import annotations

from typing import Any

HIT = "top.hit()"
AWAY = "http://away.invalid"

PROBES: dict[str, str] = {
    # scripts in raw HTML
    "script": f"<script>{HIT}</script>",
    "script in an upper case tag": f"<SCRIPT>{HIT}</SCRIPT>",
    "script in a script": f"<scr<script>ipt>{HIT}</scr</script>ipt>",
    "script from elsewhere": f"<script src={AWAY}/x.js></script>",
    "script behind a comment": f"<!--><script>{HIT}</script>-->",
    "script in CDATA": f"<![CDATA[<script>{HIT}</script>]]>",
    "script in a paragraph": f"before <b>bold</b> <script>{HIT}</script> after",
    "script in a table": f"| a | b |\n|---|---|\n| <script>{HIT}</script> | <img src=x onerror={HIT}> |",
    "script in a list and a quote": f"- <script>{HIT}</script>\n\n> <script>{HIT}</script>",
    "script in a heading": f"## <script>{HIT}</script> <img src=x onerror={HIT}>",
    "script in entities": f"&lt;script&gt;{HIT}&lt;/script&gt; &#60;script&#62;{HIT}&#60;/script&#62;",
    # handlers
    "image with a handler": f"<img src=x onerror={HIT}>",
    "image with slashes": f"<img/src='x'/onerror={HIT}//",
    "svg with a handler": f"<svg onload={HIT}></svg>",
    "svg with a script": f"<svg><script>{HIT}</script></svg>",
    "svg animation": f"<svg><animate onbegin={HIT} attributeName=x dur=1s></svg>",
    "math with a mutation": f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror={HIT}&gt;'>",
    "noscript with a mutation": f"<noscript><p title='</noscript><img src=x onerror={HIT}>'></noscript>",
    "body with a handler": f"<body onload={HIT} onpageshow={HIT}>",
    "details with a handler": f"<details open ontoggle={HIT}><summary>x</summary></details>",
    "input that takes the focus": f"<input autofocus onfocus={HIT}>",
    "video with a handler": f"<video><source onerror={HIT}></video>",
    "marquee with a handler": f"<marquee onstart={HIT}>x</marquee>",
    "handler under the pointer": f"<b onmouseover={HIT} onclick={HIT}>hover</b>",
    # frames and forms
    "frame of a script": f"<iframe src='javascript:{HIT}'></iframe>",
    "frame with a document": f"<iframe srcdoc='<script>{HIT}</script>'></iframe>",
    "frame from elsewhere": f"<iframe src={AWAY}/frame></iframe>",
    "object and embed": f"<object data={AWAY}/x.swf></object><embed src={AWAY}/y.swf>",
    "form with a button": f"<form action={AWAY}><button formaction='javascript:{HIT}'>Approve</button></form>",
    "button with a Lab command": "<button data-commandlinker-command='kernelmenu:shutdown'>Approve</button>",
    # links
    "javascript link": f"[x](javascript:{HIT})",
    "javascript link in mixed case": f"[x](JaVaScRiPt:{HIT})",
    "javascript link in angle brackets": f"[x](<javascript:{HIT}>)",
    "javascript link in entities": f"[x](&#106;ava&#115;cript&colon;{HIT})",
    "javascript link with a line break": f"[x](java&#10;script&#9;:{HIT})",
    "javascript link by reference": f"[x][r]\n\n[r]: javascript:{HIT}",
    "javascript autolink": f"<javascript:{HIT}>",
    "javascript in an anchor": f"<a href=javascript:{HIT}>x</a>",
    "data link": "[x](data:text/html;base64,PHNjcmlwdD50b3AuaGl0KCk8L3NjcmlwdD4=)",
    "data autolink": "<data:text/html,x>",
    "vbscript and file links": "[x](vbscript:msgbox) [y](file:///etc/passwd) [z](blob:http://a.invalid/1)",
    "link without a scheme": "[x](//away.invalid/y) [z](/lab/api/workspaces) [w](../../etc/passwd)",
    "attributes in a link": f'[x](http://a.invalid "\\" onmouseover=\\"{HIT}") <http://a.invalid/"onmouseover="{HIT}>',
    "link that pings": f"<a href=http://a.invalid ping={AWAY}/ping>x</a>",
    "link of a terminal": "\x1b]8;;http://away.invalid\x07click\x1b]8;;\x07",
    # loading
    "remote image": f"![x]({AWAY}/pixel.png)",
    "remote image by reference": f"![x][r]\n\n[r]: {AWAY}/pixel.png 'title'",
    "remote image in a link": f"[![x]({AWAY}/pixel.png)](http://a.invalid)",
    "remote image in HTML": f"<img src={AWAY}/pixel.png srcset='{AWAY}/2x.png 2x'>",
    "remote picture, video and sound": f"<picture><source srcset={AWAY}/a.webp></picture><video poster={AWAY}/p.png src={AWAY}/v></video>"
    f"<audio autoplay src={AWAY}/s></audio>",
    "remote image in an svg": f"<svg><image href={AWAY}/i.png /><use href={AWAY}/u.svg#x /></svg>",
    "data image": "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "attachment": "![x](attachment:x.png)",
    "handler in an image's words": f"![<img src=x onerror={HIT}>](x.png '\"><script>{HIT}</script>')",
    "style sheet from elsewhere": f"<link rel=stylesheet href={AWAY}/x.css><style>@import url({AWAY}/y.css);</style>",
    "background from elsewhere": f"<div style='background:url({AWAY}/b.png)'>x</div><table background={AWAY}/t.png></table>",
    "page that moves away": f"<meta http-equiv=refresh content='0;url={AWAY}'><base href={AWAY}/>",
    # restyling and hiding
    "style that hides": "<style>* { display: none !important } body { visibility: hidden }</style>",
    "style that covers": "<div style='position:fixed;inset:0;z-index:99999;background:red'>covered</div>",
    "names of the page": "<form id=jupyterapp><input name=commands></form><a id=panel name=hit>x</a>",
    "classes of the page": "<div class='jp-Dialog pmnb-card lm-mod-hidden'>x</div>",
    "comment that never ends": "<!-- hidden from here",
    "element that never ends": "<textarea><title><xmp><plaintext>",
    "table that never ends": "</div></div></table><table><tr><td hidden>",
    "script that never ends": "<script>/*",
    # code
    "fence with a breaking name": f'```"><script>{HIT}</script>\nx\n```',
    "fence with attributes": f"```html onload={HIT}\n<script>{HIT}</script>\n```",
    "tilde fence with a tag": f"~~~<img src=x onerror={HIT}>\nx\n~~~",
    "diagram": f'```mermaid\ngraph TD\nA["<img src=x onerror={HIT}>"] --> B\nclick A href "javascript:{HIT}"\n```',
    "span and block of code": f"`<script>{HIT}</script>`\n\n    <script>{HIT}</script>",
    "task with a tag": f"- [ ] <input onfocus={HIT} autofocus>\n- [x] [x](javascript:{HIT})",
    # mathematics
    "dollars": "$A and $B, then $x^2$ and $$\\int_0^1 y$$",
    "mathematics with a link": f"$$\\href{{javascript:{HIT}}}{{x}}$$ \\(\\unicode{{x}}\\) \\[z\\]",
    "mathematics without dollars": "\\begin{equation}x\\end{equation}",
}
"""What it is -> the markdown. Whatever of it is seen, what follows it must be seen too."""


def plan(name: str) -> str:
    """A plan with a probe in the middle, and one in its title."""
    title = PROBES[name].splitlines()[0] if "\n" not in PROBES[name] else name
    return f"# Title {title}\n\nBEGIN\n\n{PROBES[name]}\n\nEND\n"


def bundles(name: str) -> list[dict[str, str]]:
    """Outputs that hold a probe: a plan with feedback, an answer, a tool's card with a result; and each as markdown alone."""
    from plan_mode_nb.render.cards import assistant_text, plan_card
    from plan_mode_nb.render.tool_card import tool_card

    cards = [
        plan_card(plan(name), "keep planning", f"{PROBES[name]}\nEND"),
        assistant_text(f"BEGIN\n\n{PROBES[name]}\n\nEND"),
        tool_card("exit_plan_mode", '{"plan": ' + _json(plan(name)) + "}", [{"type": "text", "text": f"{PROBES[name]}\nEND"}], "done"),
    ]
    html = {mime: "\n".join(card[mime] for card in cards) for mime in ("text/plain", "text/html")}
    markdown = {mime: "\n\n".join(card[mime] for card in cards) for mime in ("text/plain", "text/markdown")}
    return [html, markdown]


def _json(text: str) -> str:
    import json

    return json.dumps(text)


def show_reviews(names: list[str]) -> None:
    """In a kernel: a live review card for each, with changes from another plan."""
    from IPython.display import display

    from plan_mode_nb.agent.questions import QuestionRequest
    from plan_mode_nb.hosts.kernel import live_cards
    from plan_mode_nb.plan.review import review_question

    agent: Any = None  # the card shows nothing of it
    for name in names:
        request = QuestionRequest("q", agent, (review_question(plan(name)),), None)
        display(live_cards.question(request, "# Another\n\nplan\n", print))

"""The stories: what somebody does in a notebook, and what the model of that day answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from plan_mode_nb.models.script import call, say, think, usage
from plan_mode_nb.testing.faults import Slow, Stall, Status

from .telling import Running, Teller

LOAD = "%load_ext plan_mode_nb"
FREE = "%sandbox danger-full-access"
Tell = Callable[[Teller], None]
STORIES: dict[str, tuple[Sequence[Any], dict[str, bytes], Tell]] = {}
SECRET = "wh-4f2c81d09e7a"
"""Set as WAREHOUSE_TOKEN while stories are told; it must be in none of them."""


def story(name: str, *answers: Any, files: dict[str, bytes] | None = None) -> Callable[[Tell], Tell]:
    """Register a story: the model's answers, and the files beside the notebook."""

    def register(tell: Tell) -> Tell:
        STORIES[name] = (answers, files or {}, tell)
        return tell

    return register


def python(code: str) -> Any:
    return call("python", {"code": code})


def plan(text: str) -> Any:
    return call("exit_plan_mode", {"plan": text})


def todos(*done: tuple[str, str]) -> Any:
    return call("todo_write", {"todos": [{"content": content, "status": status} for content, status in done]})


def approve(running: Running) -> None:
    running.review("Approve")


def keep(words: str | None = None) -> Callable[[Running], None]:
    return lambda running: running.review("Keep planning", words)


def discuss(running: Running) -> None:
    running.discuss()


ORDERS = b"order,day,amount\n1,2026-03-02,19.5\n2,2026-03-02,7.25\n3,2026-03-03,40.0\n4,2026-03-05,12.75\n"


@story(
    "keep-planning-twice",
    [think("Look first."), say("I look at the orders first."), python("orders[:2]"), usage(900, 40)],
    [say("Here is my plan."), plan("# Sum the orders by day\n\n1. Group by day.\n2. Sum the amounts.\n"), usage(1000, 60)],
    [say("Days without orders are part of it now."),
     plan("# Sum the orders by day\n\n1. Group by day, **days without orders included**.\n2. Sum the amounts.\n"), usage(1100, 70)],
    [say("And a check at the end."),
     plan("# Sum the orders by day\n\n1. Group by day, **days without orders included**.\n2. Sum the amounts.\n3. Check the total.\n"),
     usage(1200, 80)],
    [todos(("Sum by day", "in_progress"), ("Check the total", "pending")),
     python("totals = {f'2026-03-0{day}': sum(a for _, d, a in orders if d.endswith(str(day))) for day in range(2, 6)}\ntotals"),
     usage(1300, 90)],
    [todos(("Sum by day", "completed"), ("Check the total", "in_progress")),
     python("assert sum(totals.values()) == sum(amount for _, _, amount in orders)\nprint('the totals add up')"), usage(1400, 50)],
    [say("The totals are in `totals`, and they **add up**."), usage(1500, 20)],
)  # fmt: skip
def keep_planning_twice(tell: Teller) -> None:
    tell.text("# Keep planning, twice\n\nThe person sends the plan back with words, then with other words, then approves it.")
    tell.cell(LOAD)
    tell.cell("orders = [(1, '2026-03-02', 19.5), (2, '2026-03-02', 7.25), (3, '2026-03-03', 40.0), (4, '2026-03-05', 12.75)]")
    tell.cell(FREE)
    tell.cell(
        "%plan sum the orders by day",
        keep("what about days without orders?"),
        keep("check at the end that nothing was lost"),
        approve,
    )
    tell.cell("totals")


@story(
    "dismiss-and-talk",
    [say("Here is my plan."), plan("# Rename the columns\n\n1. Lower case.\n2. No blanks.\n"), usage(800, 40)],
    [say("I wait for you."), usage(900, 10)],
    [say("`Order No` becomes `order_no`."), usage(950, 20)],
    [plan("# Rename the columns\n\n1. Lower case.\n2. `_` for blanks.\n"), usage(1000, 40)],
    [python("columns = [name.lower().replace(' ', '_') for name in columns]\ncolumns"), usage(1050, 30)],
    [say("Renamed."), usage(1100, 5)],
)
def dismiss_and_talk(tell: Teller) -> None:
    tell.text("# Put the plan aside and talk\n\n*Discuss* closes the review; the person asks, runs a cell, and asks for the plan again.")
    tell.cell(LOAD)
    tell.cell(f"{FREE}\ncolumns = ['Order No', 'Day']")
    tell.cell("%plan rename the columns", discuss)
    tell.cell("len(columns)")
    tell.cell("%agent what happens to the blanks?")
    tell.cell("%agent present it again", approve)
    tell.cell("columns")


@story(
    "off-during-review",
    [say("Here is my plan."), plan("# Delete the drafts\n\n1. Find them.\n2. Delete them.\n"), usage(700, 30)],
    [say("Plan mode is off, so I only answer: there are two drafts."), usage(800, 20)],
)
def off_during_review(tell: Teller) -> None:
    tell.text("# Plan mode off while the plan is under review\n\nThe person leaves by the toggle on the controls; the review is over.")
    tell.cell(LOAD)

    def leave(running: Running) -> None:
        running.wait_card()
        running.control(kind="plan", active=False)

    tell.cell("%plan delete the drafts", leave)


@story(
    "two-agents",
    [say("I keep the *orders*."), usage(500, 10)],
    [say("I keep the *customers*."), usage(510, 10)],
    [say("You asked me about orders."), usage(600, 10)],
    [say("You asked me about customers."), usage(610, 10)],
)
def two_agents(tell: Teller) -> None:
    tell.text("# Two agents in one notebook\n\nEach has a session of its own.")
    tell.cell(LOAD)
    tell.cell("%agent look after the orders")
    tell.cell("%%agent --as customers\nlook after the customers")
    tell.cell("%agent what did I ask?")
    tell.cell("%%agent --as customers\nwhat did I ask?")


@story(
    "fork-and-new",
    [say("Seven."), usage(400, 5)],
    [say("Forty-two, then."), usage(450, 5)],
    [say("Still seven: here nobody said otherwise."), usage(430, 10)],
    [say("You have told me no number yet."), usage(390, 10)],
)
def fork_and_new(tell: Teller) -> None:
    tell.text("# A fork, and a new session\n\nThe fork goes on from the first turn; the new session knows nothing.")
    tell.cell(LOAD)
    first = tell.cell("%agent the number is seven; which is it?")
    assert first.status == "ok"
    end = tell.length() - 1
    tell.cell("%agent it is forty-two now; which is it?")
    tell.cell(f"%session fork {end}")
    tell.cell("%agent which is it?")
    tell.cell("%session new")
    tell.cell("%agent which is it?")


@story(
    "interrupt-and-go-on",
    [Slow(0.02), say("I count very slowly: " + "one more, " * 200), usage(300, 400)],
    [say("Stopped. What next?"), usage(350, 10)],
    [say("I run it."), python("seen = 1\nprint('counting')\nimport time\ntime.sleep(60)"), python("seen = 2"), usage(380, 20)],
    [say("It was interrupted after *counting*."), usage(400, 10)],
    [plan("# Count on\n\n1. Count.\n"), usage(420, 10)],
    [say("Then we talk."), usage(430, 5)],
)
def interrupt_and_go_on(tell: Teller) -> None:
    tell.text(
        "# Stop, and go on\n\nWhile the answer streams (words that came too late are handed back), while code runs, and while a review "
        "waits. Each time the next cell works."
    )
    tell.cell(LOAD)
    tell.cell(FREE)

    def late(running: Running) -> None:
        running.until_shown("one more, one more")
        running.control(kind="steer", text="and backwards")
        running.interrupt()

    tell.cell("%agent count", late, fails="KeyboardInterrupt")
    tell.cell("%agent are you there?")

    def stop(running: Running) -> None:
        running.until_shown("counting\n")
        running.control(kind="stop")

    tell.cell("%agent count in the kernel", stop, fails="KeyboardInterrupt")
    tell.cell("%agent what happened?")
    tell.cell("%plan count on", lambda running: (running.wait_card(), running.interrupt()), fails="KeyboardInterrupt")
    tell.cell("%agent let us talk")


@story(
    "error-and-retry",
    [Status(503, "overloaded", retry_after=0)],
    [say("The second try worked."), usage(300, 10)],
    [Status(401, "the key is wrong")],
    [say("And now again."), usage(320, 10)],
)
def error_and_retry(tell: Teller) -> None:
    tell.text(
        "# A failed request\n\nAn overloaded server is asked again within the step. A refused key ends the turn, and the next one works."
    )
    tell.cell(LOAD)
    tell.cell("%agent are you there?")
    tell.cell("%agent and now?", fails="TurnError")
    tell.cell("%agent once more")


@story(
    "approval-rejected",
    [say("I clean up."), python("drafts.clear()\nlen(drafts)"), usage(500, 20)],
    [say("Then I only count them."), python("len(drafts)"), usage(600, 20)],
    [say("There are two."), usage(650, 5)],
    [python("drafts.pop()"), usage(700, 10)],
    [say("Nobody is asked any more, so I leave them alone."), usage(750, 15)],
)
def approval_rejected(tell: Teller) -> None:
    tell.text("# An approval refused\n\nOutside full access each piece of code asks. *Reject*, then *Allow once*, then `never`.")
    tell.cell(LOAD)
    tell.cell("drafts = ['a', 'b']")
    tell.cell("%agent clean up", lambda running: running.approval("Reject"), lambda running: running.approval("Allow once"))
    tell.cell("%approval never")
    tell.cell("%agent remove the last one")
    tell.cell("drafts")


@story(
    "volatile-tool",
    [python("import time\nstarted = time.time_ns()\nprint('started at', started)"), usage(400, 20)],
    [say("The clock is running."), usage(450, 5)],
)
def volatile_tool(tell: Teller) -> None:
    tell.text(
        "# Code that is never the same twice\n\nThe cell is tagged `replay-volatile`: a replay runs the code and takes the recorded result."
    )
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%agent start the clock", tags=["replay-volatile"])
    tell.cell("started > 0")


@story(
    "restart-in-plan-mode",
    [say("I look first."), python("limit = 3\nlimit"), usage(400, 20)],
    [say("The limit is three."), usage(450, 5)],
    [say("The kernel is another one now, and we still plan."), plan("# Set the limit again\n\n1. `limit = 3`.\n"), usage(600, 30)],
    [python("limit = 3\nlimit"), usage(650, 10)],
    [say("Set."), usage(680, 5)],
)
def restart_in_plan_mode(tell: Teller) -> None:
    tell.text("# Plan mode across a kernel restart\n\nThe state is in the log. Full access is not: it ends with its kernel.")
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%plan which limit do we have?")
    tell.text("Here the kernel was restarted.")
    tell.restart()
    tell.again(LOAD)
    tell.again(FREE)
    tell.cell("%agent go on", approve)
    tell.cell("limit")


LONG_PLAN = "# Move the archive\n\n" + "\n".join(
    f"## Part {part}\n\n" + "\n".join(f"{step}. Copy shelf {part}.{step}, compare, then remove it." for step in range(1, 13)) + "\n"
    for part in range(1, 6)
)


@story(
    "long-plan",
    [say("This takes five parts."), plan(LONG_PLAN), usage(900, 4000)],
    [say("I begin with part 1 when you say so."), usage(5000, 10)],
)
def long_plan(tell: Teller) -> None:
    tell.text("# A long plan\n\nSixty steps, whole, in the review and afterwards.")
    tell.cell(LOAD)
    tell.cell("%plan move the archive", approve)


@story(
    "languages",
    [say("先看看数据。"), python("città = ['Zürich', '東京', 'Αθήνα']\nprint(', '.join(città))"), usage(300, 20)],
    [say("计划如下：**三**步。"), plan("# 计划：排序 🗂\n\n1. 読む\n2. **整理**する\n3. أكتب النتيجة\n"), usage(350, 40)],
    [say("修改后的计划。"), plan("# 计划：按字母排序 🗂\n\n1. 読む\n2. **整理**する\n3. أكتب النتيجة\n"), usage(400, 40)],
    [python("città.sort()\ncittà"), usage(450, 10)],
    [say("完成 ✅ — 結果は `città` にあります。"), usage(480, 10)],
)
def languages(tell: Teller) -> None:
    tell.text("# Other scripts\n\nChinese, Japanese, Arabic, accents and emoji in prompt, plan, feedback, code and results.")
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%plan 请把城市排序 👍", keep("按字母顺序，谢谢 🙏"), approve)
    tell.cell("città")


@story(
    "a-plot",
    [say("I draw it."), python("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('amounts')\nplt.show()"), usage(500, 30)],
    [say("It rises, then falls."), usage(700, 10)],
)
def a_plot(tell: Teller) -> None:
    tell.text("# A figure\n\nThe model is shown the figure that its code drew, and the notebook keeps it under the call.")
    tell.cell(LOAD)
    tell.cell(f"{FREE}\n%matplotlib inline")
    tell.cell("%agent draw 1, 3, 2")
    tell.cell("plt.rcParams['axes.titlesize']")


@story(
    "a-dataframe",
    [call("read", {"path": "orders.csv"}), usage(500, 10)],
    [python("import pandas as pd\norders = pd.read_csv('orders.csv')\norders"), usage(600, 20)],
    [call("variables", {"names": ["orders"]}), usage(700, 10)],
    [call("grep", {"pattern": "03-02", "path": "orders.csv"}), usage(750, 10)],
    [say("Four orders, two of them on March 2."), usage(800, 10)],
    files={"orders.csv": ORDERS},
)
def a_dataframe(tell: Teller) -> None:
    tell.text("# A table\n\nThe agent reads a file, makes a data frame that stays, and looks at it. Files are not read again in a replay.")
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%agent load orders.csv")
    tell.cell("orders.amount.sum()")


@story(
    "todo-list",
    [say("Three things."), todos(("Load", "in_progress"), ("Clean", "pending"), ("Count", "pending")), usage(300, 20)],
    [python("rows = [1, None, 3]"), todos(("Load", "completed"), ("Clean", "in_progress"), ("Count", "pending")), usage(350, 20)],
    [python("rows = [row for row in rows if row is not None]"),
     todos(("Load", "completed"), ("Clean", "completed"), ("Count", "in_progress")), usage(400, 20)],
    [python("len(rows)"), todos(("Load", "completed"), ("Clean", "completed"), ("Count", "completed")), usage(450, 20)],
    [say("Two rows are left."), usage(480, 5)],
)  # fmt: skip
def todo_list(tell: Teller) -> None:
    tell.text("# A todo list\n\nOne list under the turn, in its last state.")
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%agent load, clean and count the rows")
    tell.cell("rows")


@story(
    "steer-and-toggle",
    [Slow(0.02), say("I measure in metres: " + "one metre, " * 40), python("metres = 10"), usage(300, 120)],
    [say("In feet, and planning first."), plan("# Measure in feet\n\n1. Convert.\n"), usage(380, 30)],
    [python("feet = round(metres / 0.3048, 1)\nfeet"), usage(420, 20)],
    [say("32.8 feet."), usage(450, 5)],
)
def steer_and_toggle(tell: Teller) -> None:
    tell.text("# Steering, and the plan toggle, while the turn runs\n\nBoth apply from the next step.")
    tell.cell(LOAD)
    tell.cell(FREE)

    def steer(running: Running) -> None:
        running.until_shown("one metre, one metre")
        running.control(kind="steer", text="in feet, please")
        running.control(kind="plan", active=True)

    tell.cell("%agent measure", steer, approve)
    tell.cell("feet")


@story(
    "a-failing-tool",
    [python("total / 0"), usage(300, 10)],
    [python("def half(x):\n    return x / 2\nhalf('seven')"), usage(350, 20)],
    [call("python", '{"code": 1}'), usage(370, 5)],
    [plan("no heading"), usage(380, 5)],
    [say("I made four mistakes and learned from each."), usage(400, 10)],
)
def a_failing_tool(tell: Teller) -> None:
    tell.text("# Calls that fail\n\nTracebacks, wrong arguments, a plan outside plan mode: results, not errors of the cell.")
    tell.cell(LOAD)
    tell.cell(f"{FREE}\ntotal = 7")
    tell.cell("%agent try everything")


@story(
    "limits",
    [say("One."), python("1"), usage(300, 5)],
    [say("Two."), python("2"), usage(310, 5)],
    [say("Three."), usage(320, 5)],
)
def limits(tell: Teller) -> None:
    tell.text("# A turn at its limit\n\nTwo requests are allowed; the turn ends in error, and the next one goes on.")
    tell.cell(LOAD)
    tell.cell(f"{FREE}\n%config PlanAgent.max_steps = 2")
    tell.cell("%agent count", fails="TurnError")
    tell.cell("%agent go on")


@story(
    "several-in-one-cell",
    [say("First."), usage(300, 5)],
    [say("Second."), usage(310, 5)],
    [say("Third."), usage(320, 5)],
)
def several_in_one_cell(tell: Teller) -> None:
    tell.text("# Several turns in one cell, and one cell twice\n\nEach turn belongs to its cell, in order.")
    tell.cell(LOAD)
    tell.cell("%agent first\nprint('between')\n%agent second")
    tell.cell("%agent third\nx = 1")
    tell.cell("%plan\n%plan off")


SUMMARIES = (
    "## What the user wants\n- Sums of the orders by day.\n## The notebook\n- `orders`: 240 rows, `day` and `amount`.\n"
    "## What comes next\n- Sum by day, then check.",
    "## What the user wants\n- Sums of the orders by day; done.\n## The notebook\n- `sums`: one row a day, columns `day`, `amount`.",
)


@story(
    "compaction",
    [say("I look at all of them."), python("for row in orders:\n    print(row)"), usage(2000, 40)],
    [say("240 orders on four days."), usage(4600, 20)],
    [plan("# Sum by day\n\n1. Sum.\n2. Check.\n"), usage(4700, 30)],
    [todos(("Sum", "in_progress"), ("Check", "pending")), usage(4800, 30)],
    [python("sums = {}\nfor day, amount in orders:\n    sums[day] = sums.get(day, 0) + amount\n    print(day, sums[day])"),
     usage(8300, 60)],
    [say(SUMMARIES[0]), usage(8400, 90)],
    [python("assert sum(sums.values()) == sum(amount for _, amount in orders)\nprint('they add up')"), usage(3000, 20)],
    [say("Summed, and they **add up**."), usage(3100, 20)],
    [Slow(0.02), say("## What " + "the user wants " * 200)],
    [say(SUMMARIES[1]), usage(3200, 60)],
    [say("`day` and `amount`."), usage(2600, 10)],
)  # fmt: skip
def compaction(tell: Teller) -> None:
    tell.text(
        "# A long conversation\n\nOnce it fills four fifths of what the model can read, its older part becomes a summary, in the middle of "
        "a turn: the approved plan and the todo list stay word for word. Then the person asks for one, stops it, and asks again."
    )
    tell.cell(LOAD)
    tell.cell(f"{FREE}\n%config PlanAgent.context_window = 10_000\norders = [(f'2026-03-0{{n % 4 + 2}}', n * 1.5) for n in range(240)]")
    tell.cell("%agent look at the orders")
    tell.cell("%plan sum them by day", approve)

    def stop(running: Running) -> None:
        running.requests(9)
        running.until_shown("Compacting the conversation")
        running.interrupt()

    tell.cell("%session compact", stop, fails="KeyboardInterrupt")
    tell.cell("%session compact keep the names of the columns")
    tell.cell("%agent which columns are there?")
    tell.cell("sums")


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000300000002080000000053a9ca7f0000000d4944415478da636868406000000e0401019a4d0d1b0000000049454e44ae426082"
)


@story(
    "images",
    [say("A grey rectangle, three by two."), usage(900, 10)],
    [plan("# Make it larger\n\n1. Six by four.\n"), usage(950, 20)],
    [say("I will make it larger."), usage(980, 10)],
    files={"grey.png": PICTURE},
)
def images(tell: Teller) -> None:
    tell.text("# Images\n\nThe picture travels in the notebook's metadata, so the request is the same wherever the file is opened.")
    tell.cell(LOAD)
    tell.cell("%%agent --image grey.png\nwhat do you see?")
    tell.cell("%%plan --image grey.png\nmake it larger", approve)
    tell.note_images()


@story(
    "nobody-to-answer",
    [say("Here is my plan."), plan("# Sweep\n\n1. Sweep.\n"), usage(500, 20)],
    [say("Nobody could look at the plan, so I stop here."), usage(550, 10)],
)
def nobody_to_answer(tell: Teller) -> None:
    tell.text("# Run without anybody there\n\nThe review fails at once; nothing is approved.")
    tell.headless()
    tell.cell(LOAD)
    tell.cell("%plan sweep")
    tell.cell("%plan off")


QUESTIONS = [
    {"id": "unit", "question": "Which unit?", "options": [{"label": "metres"}, {"label": "feet", "description": "as the drawing has it"}]},
    {"id": "name", "question": "What shall the column be called?"},
]


@story(
    "a-question",
    [call("ask_user_question", {"questions": QUESTIONS}), usage(500, 40)],
    [python("height_ft = 10"), usage(560, 20)],
    [say("`height_ft` is there."), usage(580, 5)],
    [call("ask_user_question", {"questions": QUESTIONS[:1]}), usage(600, 20)],
    [say("Then I wait."), usage(640, 5)],
)
def a_question(tell: Teller) -> None:
    tell.text("# Questions to the person\n\nOne is answered with a choice and with words, the next is put aside.")
    tell.cell(LOAD)
    tell.cell(FREE)

    def answer(running: Running) -> None:
        running.wait_card()
        running.act("question", kind="answer", answers=[{"id": "unit", "selected": ["feet"]},
                                                        {"id": "name", "selected": [], "custom": "height_ft"}])  # fmt: skip

    def aside(running: Running) -> None:
        running.wait_card()
        running.act("question", kind="dismiss")

    tell.cell("%agent add the height", answer)
    tell.cell("%agent and the width", aside)
    tell.cell("height_ft")


@story(
    "sandbox-denial",
    [call("bash", {"command": "echo changed > orders.csv; cat orders.csv | head -1"}), usage(500, 20)],
    [say("I may not write here."), usage(560, 10)],
    [call("write", {"path": "notes.txt", "content": "later\n"}), usage(600, 20)],
    [say("Nor there."), usage(640, 5)],
    files={"orders.csv": ORDERS},
)
def sandbox_denial(tell: Teller) -> None:
    tell.text("# Read-only\n\nThe sandbox keeps programs and tools from writing. In a replay neither runs.")
    tell.cell(LOAD)
    tell.cell("%sandbox read-only")
    tell.cell("%agent change the orders", lambda running: running.approvals("Reject"))
    tell.cell("%agent make a note", lambda running: running.approvals("Reject"))


SUMS = """\
import csv
# What the user asked for: the sum by day, from the file as it is.
rows = csv.DictReader(open("orders.csv"))
sums = {}
for row in rows:
    sums[row["day"]] = sums.get(row["day"], 0) + float(row["amount"])
print("lines:", bash(command="wc -l < orders.csv"))
for day in sums:
    print(day, len(grep(pattern=day, path="orders.csv").splitlines()))
print(python(code=f"sums = {sums!r}\\nmax(sums, key=sums.get)"))
try:
    read(path="notes.txt")
except ToolCallError as error:
    print("no notes:", error)
todo_write(todos=[{"content": "Sum by day", "status": "completed"}, {"content": "Round", "status": "pending"}])
len(sums)
"""
ROUND = """\
plan = "# Round the sums\\n\\n" + "\\n".join(f"{number}. {step}." for number, step in enumerate(["Round to ten", "Show them"], 1))
exit_plan_mode(plan=plan)
"""


@story(
    "a-program",
    [say("One program does it."), call("run_code", {"code": SUMS}), usage(900, 120)],
    [say("March 3 has the largest sum, and `sums` is there."), usage(1000, 15)],
    [call("run_code", {"code": "sums['2026-03-03']"}), usage(1050, 10)],
    [call("run_code", {"code": ROUND}), usage(1100, 60)],
    [python("rounded = {day: round(amount, -1) for day, amount in sums.items()}\nrounded"), usage(1200, 30)],
    [say("Rounded."), usage(1250, 5)],
    files={"orders.csv": ORDERS},
)
def a_program(tell: Teller) -> None:
    tell.text(
        "# One program in place of many calls\n\nThe program is confined and not run again in a replay; what it called is approved, shown "
        "and replayed call by call. The plan, too, comes from a program."
    )
    tell.cell(LOAD)
    tell.cell("%config PlanAgent.code_mode = True")
    tell.cell("%agent sum the orders by day", lambda running: running.approval("Allow once"))
    tell.cell("sums")
    tell.cell("%plan round them", approve, lambda running: running.approval("Allow once"))
    tell.cell("rounded")


def scratch(code: str, *variables: str) -> Any:
    return call("python", {"code": code, "where": "scratch", "variables": list(variables)})


@story(
    "scratch",
    [say("I try it beside the notebook first."),
     scratch("orders.sort(key=lambda order: -order[1])\nby_day = {}\nfor day, amount in orders:\n"
             "    by_day[day] = by_day.get(day, 0) + amount\nby_day", "orders", "lines"), usage(500, 60)],
    [say("Without the reader, then."),
     scratch("by_day = {}\nfor day, amount in orders:\n    by_day[day] = by_day.get(day, 0) + amount\norders.clear()\nby_day", "orders"),
     usage(600, 60)],
    [scratch("import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2), dpi=50)\nplt.bar(*zip(*by_day.items()))\nplt.show()"),
     usage(700, 40)],
    [say("March 2 is the best day. Shall it stay in the notebook?"), usage(750, 15)],
    [python("best = max(orders, key=lambda order: order[1])\nbest"), usage(800, 20)],
    [say("`best` is there."), usage(820, 5)],
    files={},
)  # fmt: skip
def in_the_scratch_process(tell: Teller) -> None:
    tell.text(
        "# Beside the notebook\n\nThe agent works in a confined process on a copy of the orders, unasked; what is to stay is run in the "
        "kernel, and asks. A replay takes the scratch results as recorded."
    )
    tell.cell(LOAD)
    tell.cell("orders = [('03-02', 19.5), ('03-02', 7.25), ('03-03', 20.0)]\nlines = (line for line in 'abc')")
    tell.cell("%agent which day is the best?")
    tell.note_images()
    tell.cell("len(orders)")
    tell.cell("%agent keep the best order", lambda running: running.approval("Allow once"))
    tell.cell("best")


@story(
    "a-secret",
    [python("import os\nprint('the token is', os.environ.get('WAREHOUSE_TOKEN'))"), usage(500, 20)],
    [say("I see that a token is set, not which."), usage(560, 10)],
)
def a_secret(tell: Teller) -> None:
    tell.text("# A secret\n\nRecorded with a token in the environment, replayed without one.")
    tell.cell(LOAD)
    tell.cell(FREE)
    tell.cell("%agent which token do we use?")


@story(
    "a-child",
    [say("Somebody else counts."), call("spawn_agent", {"task": "Count `orders`.", "description": "count the orders"}), usage(500, 30)],
    [say("I count."), python("len(orders)"), usage(300, 10)],
    [say("There are four."), usage(330, 8)],
    [say("Four orders."), usage(560, 5)],
    [say("A copy of me makes the outline."), call("fork_agent", {"task": "Outline the report."}), usage(600, 30)],
    [plan("# Report\n\n1. Totals.\n"), usage(700, 20)],
    [say("Totals by day. To decide: the currency."), usage(760, 12)],
    [say("Here is the plan."), plan("# Report the orders\n\n1. Totals by day, in euro.\n"), usage(820, 40)],
    [say("I report them when you say so."), usage(900, 10)],
)  # fmt: skip
def a_child(tell: Teller) -> None:
    tell.text(
        "# Child agents\n\nOne begins with an empty conversation and asks before it runs code. The other is a copy of the planning agent: "
        "it plans too, and only its parent hands in the plan."
    )
    tell.cell(LOAD)
    tell.cell("orders = [19.5, 7.25, 40.0, 12.75]")
    tell.cell("%agent how many orders?", lambda running: running.approval("Allow once"))
    tell.cell("%plan report the orders", approve)


def tell_all(names: Sequence[str], folder: Any) -> None:
    """Tell the named stories (all, when none is named) and save them."""
    for name, (answers, files, tell) in STORIES.items():
        if names and name not in names:
            continue
        with Teller(name, answers, files, environment={"WAREHOUSE_TOKEN": SECRET}) as teller:
            tell(teller)
            path = teller.save(folder)
        assert SECRET not in path.read_text(encoding="utf-8")
        for file, data in files.items():
            (folder / file).write_bytes(data)
        print(json.dumps({"story": name, "bytes": path.stat().st_size}))


__all__ = ["STORIES", "Stall", "tell_all"]

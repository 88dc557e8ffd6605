"""What still answers while a cell waits, and that nothing queued is lost or reordered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .driver import Cell, Kernel

pytestmark = pytest.mark.kernel


@contextmanager
def waiting(kernel: Kernel) -> Iterator[str]:
    """A turn waits for a click in here; the id of its cell."""
    sent = kernel.send("go(scripted(('ask',)))")
    kernel.until_shown(sent, "waiting for you")
    yield sent
    kernel.click("Approve")
    assert kernel.wait(sent).status == "ok"


def still_waiting(kernel: Kernel, sent: str) -> Cell:
    cell = kernel.cell(sent)
    assert cell.status is None
    return cell


def test_completion_answers_while_a_review_waits(kernel: Kernel) -> None:
    kernel.must("a_long_name = 1")
    with waiting(kernel) as sent:
        reply = kernel.reply(kernel.request("complete_request", {"code": "a_long_n", "cursor_pos": 8}))
        assert reply["matches"] == ["a_long_name"]
        still_waiting(kernel, sent)


def test_inspection_answers_while_a_review_waits(kernel: Kernel) -> None:
    with waiting(kernel) as sent:
        reply = kernel.reply(kernel.request("inspect_request", {"code": "len", "cursor_pos": 3, "detail_level": 0}))
        assert "Return the number of items" in reply["data"]["text/plain"]
        still_waiting(kernel, sent)


def test_a_reloaded_page_can_ask_what_it_needs(kernel: Kernel) -> None:
    with waiting(kernel) as sent:
        assert kernel.reply(kernel.request("kernel_info_request", {}))["implementation"] == "ipython"
        comms = kernel.reply(kernel.request("comm_info_request", {"target_name": "jupyter.widget"}))["comms"]
        assert kernel.comm(description="Approve") in comms
        still_waiting(kernel, sent)


def test_a_kernel_whose_completion_really_awaits_is_driven_to_its_end(kernel: Kernel) -> None:
    kernel.must(
        "import asyncio\nk = get_ipython().kernel; stock = k.do_complete\n"
        "async def slow(code, at):\n    await asyncio.sleep(.05)\n    return stock(code, at)\nk.do_complete = slow; a_long_name = 1"
    )
    with waiting(kernel):
        reply = kernel.reply(kernel.request("complete_request", {"code": "a_long_n", "cursor_pos": 8}))
        assert reply["matches"] == ["a_long_name"]
    kernel.must("k.do_complete = stock")


def test_completion_answers_while_the_tool_awaits(kernel: Kernel) -> None:
    kernel.must("a_long_name = 1")
    code = "print(\\'inside\\'); import asyncio; await asyncio.sleep(60)"
    sent = kernel.send(f"go(scripted(('python', '{code}')))")
    kernel.until_shown(sent, "inside")
    reply = kernel.reply(kernel.request("complete_request", {"code": "a_long_n", "cursor_pos": 8}))
    assert reply["matches"] == ["a_long_name"]
    kernel.interrupt()
    assert kernel.wait(sent).ename == "KeyboardInterrupt"


def test_a_hung_completion_can_be_interrupted(kernel: Kernel) -> None:
    kernel.must(
        "class Slow:\n    def __dir__(self):\n        print('hung', flush=True)\n        import time; time.sleep(30)\nslow = Slow()"
    )
    sent = kernel.send("go(scripted(('ask',)))")
    kernel.until_shown(sent, "waiting for you")
    kernel.request("complete_request", {"code": "slow.", "cursor_pos": 5})
    kernel.until_printed("hung")
    kernel.interrupt()
    assert kernel.wait(sent).traceback == ["KeyboardInterrupt: agent turn cancelled"]


def test_other_requests_wait_for_the_cell_and_keep_their_order(kernel: Kernel) -> None:
    kernel.must("order = []")
    with waiting(kernel) as sent:
        cells = [kernel.send(f"order.append({n})") for n in range(3)]
        history = kernel.request("history_request", {"hist_access_type": "tail", "n": 1, "raw": True, "output": False})
        cells += [kernel.send(f"order.append({n})") for n in range(3, 6)]
        # Answered ahead of them, so they have arrived by now.
        kernel.reply(kernel.request("kernel_info_request", {}))
        still_waiting(kernel, sent)
        assert [kernel.cell(one).status for one in cells] == [None] * 6
    assert [kernel.wait(one).status for one in cells] == ["ok"] * 6
    assert kernel.reply(history)["status"] == "ok"
    assert kernel.must("print(order)") == "[0, 1, 2, 3, 4, 5]\n"


def test_a_request_that_nobody_can_read_ends_nothing(kernel: Kernel) -> None:
    with waiting(kernel) as sent:
        kernel.send_raw([b"<IDS|MSG>", b"no", b"{", b"{", b"{", b"{"])
        kernel.reply(kernel.request("kernel_info_request", {}))
        still_waiting(kernel, sent)
    assert kernel.must("print('next')") == "next\n"


def test_a_handler_that_fails_ends_nothing(kernel: Kernel) -> None:
    kernel.must("import ipywidgets\nb = ipywidgets.Button(description='Fail'); b.on_click(lambda _: 1/0)")
    with waiting(kernel) as sent:
        clicked = kernel.click("Fail")
        kernel.handled(clicked)
        still_waiting(kernel, sent)
    assert kernel.cell(sent).status == "ok"


def test_what_a_callback_prints_is_published_as_the_callbacks_own(kernel: Kernel) -> None:
    """Outside the cell's outputs, as when no turn runs; and what the turn shows next is the cell's again."""
    kernel.must("import ipywidgets\nb = ipywidgets.Button(description='Say'); b.on_click(lambda _: print('said'))")
    with waiting(kernel) as sent:
        clicked = kernel.click("Say")
        kernel.handled(clicked)
        kernel.until_printed("said")
        assert kernel.cell(sent).text == ""
        assert kernel.cell(clicked).text == "said\n"
    assert kernel.cell(sent).shown == ["ended: completed", "approved"]


def test_front_ends_see_a_busy_kernel_while_a_turn_waits(kernel: Kernel) -> None:
    with waiting(kernel):
        kernel.reply(kernel.request("kernel_info_request", {}))
        status = lambda: [m for m in list(kernel.messages) if m["msg_type"] == "status"][-1]["content"]["execution_state"]  # noqa: E731
        assert kernel.until(lambda: status() == "busy", seen=status)

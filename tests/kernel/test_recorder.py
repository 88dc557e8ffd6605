"""The record of user code, its neutral text, and the painter: in this process."""

from __future__ import annotations

import logging
import threading

import pytest

from plan_mode_nb.hosts.kernel.painter import Painter
from plan_mode_nb.hosts.kernel.recorder import Display, Recorder, Text, neutral_text, neutral_traceback, plain_text


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("plain\n", "plain\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("10%\r20%\r30%", "30%"),
        ("10%\r20%\r", "20%"),
        ("a\rb\nc\rd\n", "b\nd\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("\r\n", "\n"),
        ("", ""),
    ],
)
def test_text_is_left_as_a_terminal_would_leave_it(written: str, left: str) -> None:
    assert plain_text(written) == left


def test_a_line_of_megabytes_is_read_in_one_go() -> None:
    """No pattern may look back and forth over it; pytest's timeout would say so."""
    line = "x" * 3_000_000
    assert neutral_traceback(line) == line
    assert neutral_traceback("\r" * 3_000_000) == ""


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("Cell In[12], line 1", "Cell In[N], line 1"),
        ("Cell In [12], line 1", "Cell In[N], line 1"),
        ("Input In [3], in <module>", "Cell In[N], in <module>"),
        ("File <ipython-input-3-0a1b2c>:2", "File <cell>:2"),
    ],
)
def test_what_differs_from_run_to_run_is_replaced_in_tracebacks(text: str, neutral: str) -> None:
    assert neutral_traceback(text) == neutral


def test_a_persons_own_text_about_prompts_is_left_alone() -> None:
    assert neutral_text("see Cell In[12]") == "see Cell In[12]"


def test_writes_to_one_stream_are_one_item_and_order_is_kept() -> None:
    recorder = Recorder()
    for stream, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")):
        recorder.write(stream, text)  # type: ignore[arg-type]
    assert recorder.snapshot().items == (Text("stdout", "ab"), Text("stderr", "c"), Text("stdout", "d"))


def test_an_update_changes_the_display_it_names_and_others_are_not_taken() -> None:
    recorder = Recorder()
    recorder.display({"text/plain": "old"}, {}, display_id="one")
    recorder.display({"text/plain": "other"}, {}, display_id="two")
    assert recorder.display({"text/plain": "new"}, {"m": 1}, display_id="one", update=True)
    assert not recorder.display({"text/plain": "?"}, {}, display_id="elsewhere", update=True)
    assert recorder.snapshot().items == (
        Display({"text/plain": "new"}, {"m": 1}, "one"),
        Display({"text/plain": "other"}, {}, "two"),
    )


def test_images_are_text_and_live_widgets_are_dropped() -> None:
    recorder = Recorder()
    recorder.display({"image/png": b"\x89PNG", "image/svg+xml": b"<svg/>", "text/plain": "w"}, {})
    recorder.display({"application/vnd.jupyter.widget-view+json": {"model_id": "x"}}, {})
    assert recorder.snapshot().items == (Display({"image/png": "iVBORw==", "image/svg+xml": "<svg/>", "text/plain": "w"}, {}),)


def test_clearing_with_wait_happens_with_the_next_output() -> None:
    recorder = Recorder()
    recorder.write("stdout", "1")
    recorder.clear(wait=True)
    assert recorder.snapshot().text == "1"
    recorder.write("stdout", "2")
    assert recorder.snapshot().text == "2"
    recorder.clear()
    assert recorder.snapshot().items == ()


def test_the_last_traceback_is_the_error_and_earlier_ones_are_text() -> None:
    recorder = Recorder()
    recorder.write("stdout", "out\n")
    recorder.traceback("KeyError", "first")
    recorder.traceback("ValueError", "second In[7]")
    recorder.write("stderr", "after\n")
    recording = recorder.snapshot("error", ValueError())
    assert (recording.error, recording.error_name) == ("second Cell In[N]", "ValueError")
    assert recording.text == "out\nfirst\nafter\nsecond Cell In[N]"
    assert recorder.snapshot("ok").text == "out\nfirst\nsecond In[7]\nafter\n"


def test_an_error_that_showed_no_traceback_is_named() -> None:
    assert Recorder().snapshot("interrupted", KeyboardInterrupt()).error == "KeyboardInterrupt"


def test_many_threads_lose_nothing() -> None:
    recorder = Recorder()

    def write() -> None:
        for _ in range(1000):
            recorder.write("stdout", "x")

    threads = [threading.Thread(target=write) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert recorder.snapshot().text == "x" * 8000


def test_the_painter_paints_the_last_change_without_another_one() -> None:
    painted = threading.Event()
    painter = Painter(painted.set, logging.getLogger())
    painter.changed()
    painter.changed()
    assert painted.wait(5)
    painter.stop()


def test_a_stopped_painter_paints_no_more_and_one_that_never_began_has_no_thread() -> None:
    seen: list[int] = []
    painter = Painter(lambda: seen.append(1), logging.getLogger())
    painter.stop()
    painter.changed()
    assert seen == []
    assert not any(one.name == "plan-mode-nb-painter" for one in threading.enumerate())


def test_a_paint_that_fails_is_logged_once_and_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Event()

    def paint() -> None:
        tried.set()
        raise KeyError("paint")

    painter = Painter(paint, logging.getLogger("painter"))
    painter.changed()
    assert tried.wait(5)
    painter.stop()
    painter.changed()
    assert len(caplog.records) == 1

"""The prompts: what is asked, in words, and which typed line means which answer. They only present; who asked decides.

A line answers only when it is exactly one of the offered keys; anything else is asked again, so text never approves.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import final

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.approval import ApprovalRequest, Decided
from plan_mode_nb.agent.questions import Answer, Question, QuestionRequest, Reply
from plan_mode_nb.folds.plan import REVIEW_INTENT
from plan_mode_nb.hosts.terminal.frames import framed, rule
from plan_mode_nb.hosts.terminal.growing import Write
from plan_mode_nb.hosts.terminal.keyboard import Keyboard
from plan_mode_nb.plan.visible import visible, visible_line
from plan_mode_nb.render.cards import plan_title
from plan_mode_nb.render.child_view import whose
from plan_mode_nb.render.diff import plan_diff_text

AGAIN = "Say `%agent present it again` when ready."


@final
class Prompts:
    """Everything is called on the main thread, with the keyboard started, while nothing else writes to the terminal.

    Every call may raise what `Keyboard.read` raises, but for EOFError: Ctrl-D puts a question aside and rejects an approval.
    """

    def __init__(self, keyboard: Keyboard, write: Write, width: Callable[[], int] = lambda: shutil.get_terminal_size().columns) -> None:
        """``width``: the terminal's columns now."""
        self._keyboard = keyboard
        self._write = write
        self._width = width

    def ask(self, request: QuestionRequest, previous: str | None) -> Reply:
        """Put the questions, one after the other. ``previous``: the plan submitted before this one, where this is a review."""
        try:
            if request.agent.parent is not None:
                self._say(rule(f"{whose(request.agent.name)} asks", self._width()))
            answers = [self._answer(question, previous) for question in request.questions]
        except EOFError:
            return Reply("dismissed")
        if None in answers:
            return Reply("dismissed")
        return Reply("answered", tuple(answer for answer in answers if answer is not None))

    def approve(self, request: ApprovalRequest) -> Decided:
        """Show what would run, and why it asks."""
        self._say(rule(f"Approval: {visible_line(request.tool)}{_of(request.agent)}", self._width()))
        self._say(framed(request.preview, self._width()))
        self._say(rule("", self._width()))
        self._say(visible_line(request.reason))
        try:
            key = self._key("Let it run? ", {"a": "allow once", "r": "reject"})
        except EOFError:
            key = "r"
        return Decided("allowed-once" if key == "a" else "rejected")

    def _answer(self, question: Question, previous: str | None) -> Answer | None:
        """One answer; None when the person would rather talk."""
        intent = question.intent or {}
        if intent.get("kind") == REVIEW_INTENT and question.detail is not None and "approve" in intent:
            return self._review(question, question.detail, intent["approve"], previous)
        return self._choice(question)

    def _review(self, question: Question, plan: str, approving: str, previous: str | None) -> Answer | None:
        self._show_plan(plan)
        keeping = next((option.label for option in question.options if option.label != approving), "Keep planning")
        keys = {"a": approving.lower(), "k": keeping.lower(), "d": "discuss"} | ({} if previous is None else {"c": "changes"})
        while True:
            match self._key(f"{visible_line(question.question)} ", keys, "Words for the agent go with k."):
                case "a":
                    return Answer(question.id, (approving,))
                case "k":
                    words = self._keyboard.read("What should change? (Enter alone: no words) ")
                    return Answer(question.id, (keeping,), words if words.strip() else None)
                case "d":
                    self._say(f"The plan is put aside. {AGAIN}")
                    return None
                case _:
                    self._say(framed(plan_diff_text(previous or "", plan), self._width()))

    def _show_plan(self, plan: str) -> None:
        self._say(rule(f"Plan review: {plan_title(plan)}", self._width()))
        self._say(framed(plan, self._width()))
        self._say(rule("", self._width()))

    def _choice(self, question: Question) -> Answer:
        """Numbers pick what is offered, anything else is the person's own words."""
        self._say(rule(visible_line(question.header or "Question"), self._width()))
        self._say(visible(question.question))
        if question.detail:
            self._say(framed(question.detail, self._width()))
        for number, option in enumerate(question.options, start=1):
            described = f": {option.description}" if option.description else ""
            self._say(f"  {number}  {visible_line(option.label + described)}")
        several = ", or several as 1,2" if question.multi_select else ""
        offered = f"A number{several}, or your own words" if question.options else "Your answer"
        while True:
            said = self._keyboard.read(f"{offered} (Ctrl-D: rather talk): ")
            picked = _picked(said, question)
            if picked is not None:
                return Answer(question.id, picked)
            if said.strip() and not _is_numbers(said):
                return Answer(question.id, (), said)

    def _key(self, asked: str, keys: Mapping[str, str], hint: str = "") -> str:
        """One of the keys, asked for until it comes."""
        offered = ", ".join(f"{key} = {meaning}" for key, meaning in keys.items())
        while True:
            said = self._keyboard.read(f"{asked}[{offered}] ").strip().lower()
            if said in keys:
                return said
            self._say(f"Type {_either(list(keys))} and Enter. {hint}".rstrip())

    def _say(self, text: str) -> None:
        self._write(f"{text}\n")


def _of(agent: Agent) -> str:
    """Which child asks; "" for the agent that the person speaks to."""
    return f" for {whose(agent.name)}" if agent.parent is not None else ""


def _either(keys: list[str]) -> str:
    return f"{', '.join(keys[:-1])} or {keys[-1]}"


def _is_numbers(said: str) -> bool:
    """Meant as a choice, rightly or wrongly: an answer that is a number must not be taken for words, nor the other way round."""
    return all(part.strip().isdecimal() for part in said.split(","))


def _picked(said: str, question: Question) -> tuple[str, ...] | None:
    """The labels of the numbers, in the order offered; None when they are no choice of this question."""
    if not question.options or not _is_numbers(said):
        return None
    numbers = {int(part) for part in said.split(",")}
    if not numbers <= set(range(1, len(question.options) + 1)) or (len(numbers) > 1 and not question.multi_select):
        return None
    return tuple(option.label for number, option in enumerate(question.options, start=1) if number in numbers)

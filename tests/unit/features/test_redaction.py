"""Secrets never reach model, log, journal or display: values of the environment, keys by their shape, and pieces of a stream."""

from __future__ import annotations

import asyncio
import json
import re
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from plan_mode_nb.agent.model import Finish, ReasoningDelta, TextDelta, ToolCallDelta
from plan_mode_nb.agent.redact import GrowingText, Redactions, before_last_token
from plan_mode_nb.agent.secret_names import looks_secret, secret_values
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.features import redaction, todo
from plan_mode_nb.features.redaction import Redactor
from plan_mode_nb.loop.redacted import RedactedChunks
from plan_mode_nb.models.script import call, fail, say
from plan_mode_nb.testing.workbench import Workbench

VALUE = "hunter2-hunter2"
ENV = {"DB_PASSWORD": VALUE}
MARK = "[redacted:DB_PASSWORD]"
FALSE = "A" * 40


def clean(text: str, environ: dict[str, str] | None = None) -> str:
    return Redactor(ENV if environ is None else environ).text(text)


class TestNames:
    """Which variables hold secrets."""

    @pytest.mark.parametrize(
        "name",
        "OPENAI_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID GITHUB_TOKEN DB_PASSWORD PGPASSWORD MYSQL_PWD DB_PASS SECRET_KEY "
        "JPY_API_TOKEN NPM_AUTH SENTRY_DSN SESSION_COOKIE MY_PAT client_secret SSH_PASSPHRASE APIKEY AZURE_CREDENTIALS".split(),
    )
    def test_these_do(self, name: str) -> None:
        """By the words that they are made of."""
        assert looks_secret(name)

    @pytest.mark.parametrize(
        "name",
        "PATH PWD OLDPWD HOME KEYBOARD MONKEY PASSENGER COMPASS TOKENIZERS_PARALLELISM TOKENIZER_CACHE SSH_AUTH_SOCK SECRETS_DIR "
        "PASSWORD_FILE SSH_KEY_PATH GOOGLE_APPLICATION_CREDENTIALS TOKEN_URL GPG_KEY AUTHOR COOKIECUTTER_CONFIG PATTERN KEY_TYPE".split(),
    )
    def test_these_do_not(self, name: str) -> None:
        """Words that only hold such a word, and places of secrets."""
        assert not looks_secret(name)

    def test_a_short_value_is_no_secret(self) -> None:
        """Case 25: it would stand in ordinary words."""
        assert secret_values({"DB_PASSWORD": "test", "A_TOKEN": " 1234567 ", "B_TOKEN": "12345678"}) == {"12345678": "B_TOKEN"}

    def test_of_equal_values_one_name_is_taken(self) -> None:
        """Always the same one."""
        assert secret_values({"Z_TOKEN": VALUE, "A_TOKEN": VALUE}) == {VALUE: "A_TOKEN"}


class TestValues:
    """Whole tokens, in the forms in which code prints them."""

    def test_short_values_leave_words_intact(self) -> None:
        """Case 25, to the letter."""
        assert clean("run pytest, test it", {"DB_PASSWORD": "test"}) == "run pytest, test it"

    @pytest.mark.parametrize(
        "text",
        [
            "{}", "it is {}.", "({})", "'{}'", "x={}&y", "Bearer {}", "a\n{}\n", "{}é", "é{}", "\x1b[31m{}\x1b[0m", '{{"a": "one\\n{}"}}',
            "\\u00e9{}", "{},{}", "https://x/?key={}", "-{}-",
        ],
    )  # fmt: skip
    def test_a_whole_token_is_taken_out(self, text: str) -> None:
        """Whatever stands around it but letters, digits and the underscore; escapes and colours count as nothing."""
        assert clean(text.format(VALUE, VALUE)) == text.format(MARK, MARK)

    @pytest.mark.parametrize("text", [f"x{VALUE}", f"{VALUE}x", f"{VALUE}_", f"1{VALUE}", VALUE[:-1], VALUE.upper()])
    def test_part_of_a_longer_word_stays(self, text: str) -> None:
        """It is another word."""
        assert clean(text) == text

    @pytest.mark.parametrize(
        "value", ["a\"b\\c'd&e", "tab\tand\nline end", "grün-süß-x", "p@ss/wrd+1=", "x y z secret phrase", "<b>bold</b>secret"]
    )
    def test_json_python_urls_and_html_do_not_hide_it(self, value: str) -> None:
        """Each form that code prints."""
        printed = [value, json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value)]
        forms = [*printed, quote(value, safe=""), quote_plus(value), escape(value)]
        for form in forms:
            text = clean(f"value: {form} end", {"MY_SECRET": value})
            assert text.count("[redacted:MY_SECRET]") == 1, form
            assert value not in text

    def test_the_longer_of_two_is_taken_out_whole(self) -> None:
        """One that the other begins with would leave the rest standing."""
        assert (
            clean("abcdefgh-ijkl abcdefgh", {"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefgh-ijkl"}) == "[redacted:B_TOKEN] [redacted:A_TOKEN]"
        )

    def test_redacting_twice_changes_nothing_more(self) -> None:
        """Marks are stepped over, even where a value stands in one."""
        environ = {"SECRET_KEY": "SECRET_KEY", "A_TOKEN": "redacted"}
        once = clean("SECRET_KEY and redacted", environ)
        assert once == "[redacted:SECRET_KEY] and [redacted:A_TOKEN]"
        assert clean(once, environ) == once

    def test_a_key_that_is_set_later_is_known_and_one_that_goes_stays_known(self) -> None:
        """A notebook sets its keys while it runs."""
        environ = dict(ENV)
        redactor = Redactor(environ)
        assert redactor.text("later-secret") == "later-secret"
        environ["LATER_TOKEN"] = "later-secret"
        del environ["DB_PASSWORD"]
        assert redactor.text(f"later-secret {VALUE}") == f"[redacted:LATER_TOKEN] {MARK}"


KEYS = {
    "sk-proj-Ab3dEfGhIjKlMnOpQrStUvWx": "api-key",
    "sk-ant-api03-" + "x1" * 20: "anthropic-key",
    "ghp_" + "a1" * 18: "github-token",
    "github_pat_" + "a1" * 20: "github-token",
    "glpat-" + "a1" * 10: "gitlab-token",
    "AKIA" + "A1" * 8: "aws-key-id",
    "AIza" + "a1-_x" * 7: "google-key",
    "xoxb-123456789012-abcdef": "slack-token",
    "hf_" + "a1" * 17: "huggingface-token",
    "npm_" + "a1" * 18: "npm-token",
    "pypi-AgE" + "a1" * 30: "pypi-token",
    "sk_live_" + "a1" * 12: "stripe-key",
    "eyJ" + "a1" * 8 + ".eyJ" + "b2" * 8 + "." + "c3" * 8: "web-token",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef==\n-----END RSA PRIVATE KEY-----": "private-key",
}


class TestShapes:
    """Keys that are in no environment."""

    @pytest.mark.parametrize(("key", "name"), KEYS.items(), ids=KEYS.values())
    def test_a_key_is_known_by_its_form(self, key: str, name: str) -> None:
        """In prose, and inside the JSON of a call."""
        assert clean(f"use {key} now") == f"use [redacted:{name}] now"
        assert json.loads(clean(json.dumps({"code": f"a\n{key}"})))["code"] == f"a\n[redacted:{name}]"

    @pytest.mark.parametrize(
        "text",
        [
            "scikit-learn sk-learn sk-this-is-only-a-slug-of-words", "a4f1c9" * 7, "AKIALIKE",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "hf_hub_download", "npm_config_cache", "eyJhbGciOi", "https://example.org:8080/path@x", "postgres://localhost/db", "xox", FALSE,
            "git@github.com:owner/name.git", "sha256:" + "0f" * 32,
        ],
    )  # fmt: skip
    def test_words_hashes_and_addresses_are_none(self, text: str) -> None:
        """They stay as they are."""
        assert clean(text) == text

    def test_a_password_in_an_address_is_taken_out(self) -> None:
        """Who and where stay."""
        assert clean("postgres://ada:correcthorse@db:5432/x") == "postgres://ada:[redacted:url-password]@db:5432/x"


PEM = next(key for key in KEYS if key.startswith("-----"))


class TestGrowing:
    """A text that comes in pieces shows what the whole would show, and no part of a secret before it is known to be one."""

    @pytest.mark.parametrize("value", [VALUE, "two words of secret", "süße-geheime-worte", PEM])
    def test_letter_by_letter_no_part_of_a_secret_is_shown(self, value: str) -> None:
        """Not even its first letters."""
        redactions = Redactions()
        redactor = Redactor({"MY_SECRET": value})
        redactions.register("secrets", redactor.text, redactor.settled)
        text = f"It is {value}, and also\n{value} 日本語。{value}。 End"
        growing, shown = GrowingText(redactions), ""
        whole = redactor.text(text)
        for letter in text:
            shown += growing.push(letter)
            assert whole.startswith(shown)
        assert shown + growing.rest() == whole
        assert value not in whole

    def test_prose_is_held_by_the_word_and_scripts_without_spaces_not_at_all(self) -> None:
        """Streaming stays streaming."""
        redactor = Redactor(ENV)
        assert redactor.settled("one two thr") == 8
        assert redactor.settled("one two ") == 8
        assert redactor.settled("日本語の文章") == 6
        assert redactor.settled("-----BEGIN CERTIFICATE-----\nx ") == len("-----BEGIN CERTIFICATE-----\nx ")

    def test_a_function_that_says_nothing_is_given_whole_words(self) -> None:
        """The safe rule."""
        assert [before_last_token(text) for text in ("", "a", "a ", "a b", "a\nbc")] == [0, 0, 2, 2, 2]
        redactions = Redactions()
        redactions.register("shout", str.upper)
        growing = GrowingText(redactions)
        assert [growing.push(piece) for piece in ("a", "b c", " d")] == ["", "AB ", "C "]
        assert growing.rest() == "D"

    def test_without_functions_every_piece_passes_at_once(self) -> None:
        """Nothing waits for nothing."""
        growing = GrowingText(Redactions())
        assert growing.push("ab") == "ab"


def chunks_of(text: str, kind: type[Any] = TextDelta, index: int = 0) -> list[Any]:
    return [kind(index, letter) for letter in text]


def test_the_chunks_of_an_answer_say_what_its_message_says() -> None:
    """Text, thinking and the raw arguments of calls, several side by side, each in its order."""
    redactions = Redactions()
    redactor = Redactor(ENV)
    redactions.register("secrets", redactor.text, redactor.settled)
    arguments = json.dumps({"code": f"x = '{VALUE}'"})
    calls = [each for letter in arguments for each in (ToolCallDelta(2, "a", None, letter), ToolCallDelta(3, "b", None, letter))]
    pushed = [
        *chunks_of(f"think {VALUE}", ReasoningDelta, 0), *chunks_of(f"say {VALUE}", TextDelta, 1),
        ToolCallDelta(2, "a", "python"), ToolCallDelta(3, "b", "python"), *calls, Finish("tool-calls"),
    ]  # fmt: skip
    streamed = RedactedChunks(redactions)
    seen = [each for chunk in pushed for each in streamed.push(chunk)]
    assert seen[-1] == Finish("tool-calls")
    assert "".join(each.text for each in seen if isinstance(each, ReasoningDelta)) == f"think {MARK}"
    assert "".join(each.text for each in seen if isinstance(each, TextDelta)) == f"say {MARK}"
    for index in (2, 3):
        mine = [each for each in seen if isinstance(each, ToolCallDelta) and each.index == index]
        assert "".join(each.arguments_delta for each in mine) == redactor.text(arguments)
        assert [each.name for each in mine if each.name] == ["python"]
    thinking = max(at for at, each in enumerate(seen) if isinstance(each, ReasoningDelta))
    assert thinking < min(at for at, each in enumerate(seen) if isinstance(each, TextDelta))


def test_a_key_printed_by_a_tool_is_in_no_line_of_the_log_and_in_no_request() -> None:
    """Case 12: prompt, steering, answer, arguments and result."""
    key = next(iter(KEYS))
    previews: list[str] = []
    bench = Workbench(
        call("todo_write", {"todos": [{"content": f"use {VALUE}", "status": "pending"}]}),
        say(f"the key is {key} and {VALUE}"),
        install=[lambda seams: redaction.install(seams, ENV), todo.install],
    )
    bench.seams.previews.subscribe(lambda preview: previews.append(preview.text))
    bench.steer(f"mind {VALUE}")
    asyncio.run(bench.ask(f"my password is {VALUE}, my key {key}"))
    everything = "\n".join([*bench.session.lines, *bench.sink.lines, *map(repr, bench.model.requests), *previews])
    assert VALUE not in everything
    assert key not in everything
    assert everything.count(MARK) > 5
    assert re.search(r"the key is \[redacted:api-key\] and \[redacted:DB_PASSWORD\]", "".join(previews))


def test_installed_twice_is_refused_and_taken_out_it_is_gone() -> None:
    """Registering returns its undo."""
    bench = Workbench()
    undo = redaction.install(bench.seams, ENV)
    with pytest.raises(ValueError, match="already registered"):
        redaction.install(bench.seams, ENV)
    undo()
    assert bench.seams.redactions.text(VALUE) == VALUE


def test_a_failure_that_quotes_a_key_is_logged_and_said_without_it() -> None:
    """A provider's own words may hold the key that it was sent."""
    bench = Workbench(fail(ModelError(f"the key {VALUE} is not known", code="AUTH")), install=[lambda seams: redaction.install(seams, ENV)])
    end = asyncio.run(bench.ask("go"))
    assert end.sentence == f"the key {MARK} is not known"
    assert VALUE not in "\n".join(bench.session.lines) + repr(end)

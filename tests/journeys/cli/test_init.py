"""`wakeful init` and `wakeful agent new`, as a person types them; the model is a provider on this machine."""

import json
import os
import pty
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kit.surfaces.command_line import ME, Done, Wakeful, command_line
from kit.wires.phone_servers import NtfyServer, TelegramServer, listening
from kit.wires.provider_server import ProviderServer, messages_words, refusal, serving

KEY = "sk-ant-of-a-test"


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with serving() as server:
        server.always = messages_words("hello")
        yield server


@pytest.fixture
def home(folder: Path, wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing is set; whatever daemon is started is stopped."""
    for name in [*os.environ]:
        if name.endswith(("_API_KEY", "_BASE_URL")) or name == "NOTIFY_URL":
            monkeypatch.delenv(name)
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "NOTIFY_URL"):
        monkeypatch.setenv(name, "x")  # so that what the command sets in this process is taken back
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    yield folder / "home"
    wakeful("daemon", "stop")


@pytest.fixture
def mailbox() -> Iterator[tuple[str, list[bytes]]]:
    """An address for notices."""
    got: list[bytes] = []

    class Box(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Box)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/topic", got
    server.shutdown()
    server.server_close()


@pytest.mark.journey("init", "agent new")
def test_a_home_is_set_up_by_flags_checked_started_and_its_owner_reached(
    home: Path,
    wakeful: Wakeful,
    process: Wakeful,
    provider: ProviderServer,
    mailbox: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    address, got = mailbox
    done = process(
        "init", "--model", "anthropic", "--base-url", provider.url, "--spend", "2", "--reach", address, "--autostart",
        "--listen", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "model: anthropic:claude-sonnet-5, answered in" in done.out
    assert "key kept in secrets.env (0600)" in done.out
    assert "spend a day: $2" in done.out
    assert "reach you: test notice delivered" in done.out
    assert "systemctl --user enable wakeful.service" in done.out
    assert "daemon up, process" in done.out
    assert len(got) == 1
    assert (home / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert KEY in (home / "secrets.env").read_text()
    assert KEY not in (home / "wakeful.toml").read_text() + (home / "agents" / "main.yaml").read_text() + done.out
    assert wakeful("check").code == 0
    before = (home / "wakeful.toml").read_text()
    again = wakeful("init", "--model", "anthropic", "--yes")
    assert again.code == 2
    assert "is set up already: wakeful.toml, main.yaml" in again.err
    assert (home / "wakeful.toml").read_text() == before

    (home.parent / "work").mkdir()
    new = wakeful("agent", "new", "ops", "--at", "weekdays 07:00", "--workspace", "work", "--say", "Check the backups.")
    assert new.code == 0, new.err
    assert "07:00 Europe/Berlin" in new.out
    assert "run commands in a sandbox, no network" in new.out
    assert "now: wakeful timer run ops" in new.out
    (timer,) = json.loads(wakeful("timer", "list", "ops", "--json").out)
    assert (timer["cron"], timer["timezone"], timer["state"]) == ("0 7 * * 1-5", "Europe/Berlin", "armed")
    ran = json.loads(wakeful("timer", "run", "ops", "--json").out)
    assert (ran["agent"], ran["say"], ran["armed_by"]) == ("ops", "Check the backups.", ME)
    twice = wakeful("agent", "new", "ops", "--say", "Something else.")
    assert twice.code == 2
    assert "is there already" in twice.err


def test_a_home_that_is_set_up_again_goes_by_what_is_said_now(
    home: Path,
    wakeful: Wakeful,
    process: Wakeful,
    provider: ProviderServer,
    mailbox: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, got = mailbox
    given = ("--model", "anthropic", "--base-url", provider.url, "--no-autostart")
    home.mkdir()
    (home / "secrets.env").write_text("OTHER='stays'\n")
    (home / "secrets.env").chmod(0o600)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    first = process("init", *given, "--spend", "5", "--reach", f"{address}-one", "--listen", "none")
    assert first.code == 0 and "daemon up, process" in first.out, first.err
    old = json.loads(wakeful("daemon", "status", "--json").out)["pid"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}-new")
    again = process("init", *given, "--spend", "7", "--reach", f"{address}-two", "--replace")
    assert again.code == 0, again.err
    assert "spend a day: $7" in again.out and "test notice delivered" in again.out
    assert "daemon restarted with what was written, process" in again.out
    assert "  kept     --listen none" in again.out
    assert len(got) == 2
    status = json.loads(wakeful("daemon", "status", "--json").out)
    assert (status["pid"] != old, status["http_addr"]) == (True, None), "it listens where it did"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    written = f"OTHER='stays'\nANTHROPIC_API_KEY='{KEY}-new'\nNOTIFY_URL='{address}-two'\n"
    assert (home / "secrets.env").read_text() == written
    assert (home / "secrets.env").stat().st_mode & 0o777 == 0o600
    (limit,) = json.loads(wakeful("budget", "--json").out)
    assert limit["limit_usd"] == "7"


def test_a_key_that_is_refused_leaves_nothing_behind(
    home: Path, wakeful: Wakeful, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    provider.always = refusal(401, "authentication_error", "invalid x-api-key")
    done = wakeful("init", "--model", "anthropic", "--base-url", provider.url, "--yes", "--listen", "none")
    assert done.code == 1
    assert "did not answer" in done.err
    assert "nothing was written" in done.err
    assert KEY not in done.err
    assert not (home / "wakeful.toml").exists()
    assert not (home / "secrets.env").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "these are not given: --model, --spend, --reach, --autostart or --no-autostart"),
        (("--model", "anthropic"), 2, "these are not given: --spend, --reach"),
        (("--yes",), 3, "no model was given, and no key was found"),
        (("--model", "anthropic", "--yes"), 3, "no key of anthropic was found"),
        (("--model", "antropic", "--yes"), 2, "did you mean anthropic?"),
        (("--model", "scripted:/nowhere/x.yaml", "--yes"), 2, "there is no such script"),
        (("--model", "scripted:demo", "--yes", "--spend", "lots"), 2, "is not an amount of dollars"),
        (("--model", "scripted:demo", "--yes", "--reach", "phone"), 2, "is not a way to reach you"),
        (("--model", "scripted:demo", "--yes", "--reach", "ntfy:nowhere"), 2, "is not a way to reach you"),
        (("--model", "scripted:demo", "--yes", "--reach", "ntfy", "--no-start"), 2, "paired through the daemon"),
        (("--model", "scripted:demo", "--yes", "--listen", "nowhere"), 2, "is not an address"),
    ],
)
def test_what_is_missing_or_wrong_is_said_and_nothing_is_written(
    home: Path, wakeful: Wakeful, words: tuple[str, ...], code: int, said: str
) -> None:
    done = wakeful("init", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Hint:" in done.err
    assert not home.exists() or not any(path.name != "run" for path in home.iterdir())


def test_at_a_terminal_everything_is_asked_and_the_key_is_not_shown(
    home: Path, folder: Path, provider: ProviderServer
) -> None:
    answers = ["anthropic:claude-sonnet-5", KEY, "3", "none", "n"]
    done = _typed(["init", "--no-start", "--base-url", provider.url], answers, folder)
    assert done.code == 2
    assert "--model names none" in done.out
    slips = [KEY, "three", "3", "pigeon", "none", "n"]
    done = _typed(["init", "--no-start", "--model", "anthropic", "--base-url", provider.url], slips, folder)
    assert done.code == 0, done.out
    assert "--spend three is not an amount of dollars" in done.out and "'pigeon' is not a way to reach you" in done.out
    assert "Key of anthropic (ANTHROPIC_API_KEY; it is not shown)" in done.out
    assert "Spend a day, in dollars (or none) [5]" in done.out
    assert "Start when the machine starts? [Y/n]" in done.out
    assert KEY not in done.out
    assert KEY in (home / "secrets.env").read_text()
    assert "usd = 3" in (home / "wakeful.toml").read_text()


def test_a_phone_is_paired_at_the_terminal_and_a_test_arrives_there(home: Path, folder: Path, wakeful: Wakeful) -> None:
    with listening(NtfyServer()) as ntfy:

        def code() -> str:
            """What the phone shows, which subscribes to the one topic there is."""
            ((message,),) = ntfy.until(lambda: list(ntfy.topics.values()))
            return str(message["message"].split("code is ")[1].split()[0])

        words = ["init", "--model", "scripted:demo", "--spend", "1", "--no-autostart", "--listen", "none"]
        done = _typed(words, [f"ntfy:{ntfy.url}", "AAAA-AAAA", code], folder)
        assert done.code == 0, done.out
        (topic,) = ntfy.topics
        assert f"{ntfy.url}/{topic}" in done.out and "no phone was shown this code for phone" in done.out
        assert "reach you: ntfy, paired as phone; test notice delivered" in done.out
        assert any("test" in each["title"] for each in ntfy.shown(topic))
        (record,) = json.loads(wakeful("channel", "list", "--json").out)
        assert (record["state"], record["added_by"]) == ("paired", f"local:{os.getuid()}")
        again = _typed([*words, "--replace", "--reach", f"ntfy:{ntfy.url}"], [], folder)
        assert "reach you: ntfy, paired as phone; test notice delivered" in again.out, "it is not paired twice"
    written = [path.read_text("utf-8") for path in (home / "wakeful.toml", home / "agents" / "main.yaml")]
    assert not any(topic in text for text in written), "nothing of it is in a file"


def test_without_a_terminal_a_phone_is_added_and_the_steps_are_told(
    home: Path, wakeful: Wakeful, process: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--model", "scripted:demo", "--spend", "1", "--no-autostart", "--listen", "none")
    refused = process("init", *flags, "--reach", "telegram")
    assert refused.code != 0 and "a Telegram bot needs its token" in refused.err and "@BotFather" in refused.err
    assert not (home / "wakeful.toml").exists()
    with listening(TelegramServer()) as telegram:
        monkeypatch.setenv("TELEGRAM_TOKEN", TelegramServer.TOKEN)
        done = process("init", *flags, "--reach", f"telegram:{telegram.url}")
        assert done.code == 0, done.err
        assert "send /start to your bot; it answers with a code" in done.out
        assert "wakeful channel pair phone CODE" in done.out and "wakeful notify test main" in done.out
        monkeypatch.delenv("TELEGRAM_TOKEN")
        telegram.write(17, "/start")
        (message,) = telegram.until(lambda: telegram.shown(17))
        paired = wakeful("channel", "pair", "phone", message["text"].split("code is ")[1].split()[0])
        assert "is paired" in paired.out, paired.err
        assert "a test notice about main is stored" in wakeful("notify", "test").out
        telegram.until(lambda: any("test" in each["text"] for each in telegram.shown(17)))
        wakeful("daemon", "stop")
    assert TelegramServer.TOKEN in (home / "secrets.env").read_text()
    saved = wakeful("backup", str(home.parent / "saved.wakeful"))
    assert saved.code == 0, saved.err
    with tarfile.open(home.parent / "saved.wakeful") as archive:
        held = b"".join(found.read() for each in archive if (found := archive.extractfile(each)) is not None)
    assert held and TelegramServer.TOKEN.encode() not in held


def _typed(words: list[str], answers: Sequence[str | Callable[[], str]], folder: Path) -> Done:
    """A command at a terminal, with what a person types."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command_line(*words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**os.environ, "COLUMNS": "120"},
        start_new_session=True,
    )
    os.close(theirs)
    seen, asked = b"", 0
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
        if seen.endswith(b": ") and asked < len(answers):
            answer = answers[asked]
            os.write(ours, (answer if isinstance(answer, str) else answer()).encode() + b"\n")
            asked += 1
            seen += b"\n"
    os.close(ours)
    return Done(process.wait(120), seen.decode(), "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ops", "--say", "x", "--at", "noonish", "--model", "scripted:demo"), 'these work: "07:00", "weekdays 07:00"'),
        (("ops", "--say", "x", "--at", "0 7 31 2 *", "--model", "scripted:demo"), "these work"),
        (("../ops", "--say", "x", "--model", "scripted:demo"), "is not a name for an agent"),
        (("007", "--say", "x", "--model", "scripted:demo"), "a letter first"),
        (("ops", "--say", " ", "--model", "scripted:demo"), "--say is empty"),
        (("ops", "--say", "x", "--model", "antropic:claude"), "nothing was written"),
        (("ops", "--say", "x", "--model", "claude"), "write provider:model"),
        (("ops", "--say", "x"), "set the home up: wakeful init"),
        (("ops", "--say", "x", "--workspace", "nowhere", "--model", "scripted:demo"), "mkdir -p"),
        (("ops", "--say", "x", "--at", "07:00", "--timezone", "Mars/X", "--model", "scripted:demo"), "tz database"),
    ],
)
def test_a_new_agent_that_cannot_be_is_refused_with_what_would_be_right(
    home: Path, wakeful: Wakeful, words: tuple[str, ...], said: str
) -> None:
    done = wakeful("agent", "new", *words)
    assert done.code == 2
    assert said in done.err
    assert not (home / "agents").exists()


@pytest.mark.journey("agent new --json")
def test_a_new_agent_without_a_daemon_says_how_to_start_one(home: Path, wakeful: Wakeful) -> None:
    done = wakeful("agent", "new", "ops", "--say", "Look around.", "--model", "scripted:demo")
    assert done.code == 0, done.err
    assert "may: talk; no files, no commands" in done.out
    assert "no daemon runs: wakeful daemon start" in done.out
    told = json.loads(wakeful("agent", "new", "shop", "--say", "Look.", "--model", "scripted:demo", "--json").out)
    assert (told["agent"], Path(told["file"]).name) == ("shop", "shop.yaml")


def test_a_name_that_yaml_reads_as_something_else_is_a_name(home: Path, wakeful: Wakeful) -> None:
    assert wakeful("agent", "new", "no", "--say", "Look around.", "--model", "scripted:demo").code == 0
    assert 'name: "no"' in (home / "agents" / "no.yaml").read_text()
    assert wakeful("check").code == 0


def test_a_key_in_the_secrets_of_the_home_is_there_for_commands_too(home: Path, process: Wakeful) -> None:
    asks = ("agent", "new", "ops", "--say", "Look around.", "--model", "anthropic:claude-sonnet-5")
    done = process(*asks)
    assert done.code == 0, done.err
    assert "ANTHROPIC_API_KEY is not set" in done.err and "secrets.env of the home" in done.err
    (home / "secrets.env").write_text("ANTHROPIC_API_KEY=sk-ant-1\n")
    (home / "secrets.env").chmod(0o644)
    open_to_all = process("check")
    assert "can be read by others; nothing of it is used" in open_to_all.err and "1 warning" in open_to_all.out
    (home / "secrets.env").chmod(0o600)
    assert "no errors" in process("check").out and "warning" not in process("check").out
    assert "in ANTHROPIC_API_KEY" in process("models", "show", "anthropic:claude-sonnet-5").out


def test_a_timer_that_is_not_there_is_named(home: Path, wakeful: Wakeful) -> None:
    assert wakeful("run", "hi", "--model", "scripted:demo").code == 0
    done = wakeful("timer", "run", "ops")
    assert done.code == 2
    assert "wakeful timer list" in done.err


@pytest.mark.journey("init --json")
def test_the_path_of_a_script_stays_as_it_was_given(home: Path, folder: Path, process: Wakeful) -> None:
    script = folder / "replies.json"
    script.write_text('["Hello.", "Hello."]')
    words = ("init", "--model", f"scripted:{script}", "--yes", "--no-start", "--no-autostart")
    done = process(*words)
    assert done.code == 0, done.err
    assert f'model: "scripted:{script}"' in (home / "agents" / "main.yaml").read_text()
    told = json.loads(process(*words, "--replace", "--json").out)
    assert told["model"] == f"scripted:{script}"

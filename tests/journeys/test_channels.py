"""Approvals that are decided on a phone while no terminal is open: through ntfy, and through Telegram.

The process that serves is a real one, and so is the service that reaches the phone, on this machine.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kit.surfaces.served_home import ServedHome
from kit.wires.loopback import free_port
from kit.wires.phone_servers import NtfyServer, TelegramServer, listening
from wakeful.service.serving.options import ServeOptions

ME, STRANGER = 17, 666


def wakeful(home: ServedHome, *words: str) -> str:
    line = [sys.executable, "-m", "wakeful.surfaces.cli", *words]
    found = subprocess.run(line, env=home.environment, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def until(is_there: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := is_there():
            return found
        time.sleep(0.05)
    raise AssertionError(f"it never came: {is_there}")


@pytest.fixture(scope="module")
def ntfy() -> Iterator[NtfyServer]:
    with listening(NtfyServer()) as found:
        yield found


@pytest.fixture(scope="module")
def telegram() -> Iterator[TelegramServer]:
    with listening(TelegramServer()) as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    folder = tmp_path_factory.mktemp("home")
    (folder / "secrets.env").write_text(f"TELEGRAM_TOKEN={TelegramServer.TOKEN}\nWAKEFUL_PROVIDER_PROBE_SECONDS=1\n")
    (folder / "secrets.env").chmod(0o600)
    found = ServedHome(folder, ServeOptions(port=0, tools=("kit.surfaces.phone_agents:agents",))).start()
    try:
        yield found
    finally:
        found.end()


@pytest.fixture(scope="module")
def topic(home: ServedHome, ntfy: NtfyServer) -> str:
    """A phone that is paired through ntfy, as a person does it; the topic that it reads."""
    told = wakeful(home, "channel", "add", "ntfy", "phone", "--server", ntfy.url)
    found = re.search(rf"{re.escape(ntfy.url)}/(\w+)", told)
    assert found is not None, told
    (message,) = ntfy.until(lambda: ntfy.shown(found[1]))
    code = re.search(r"code is (\S+)", message["message"])
    assert code is not None
    assert "is paired" in wakeful(home, "channel", "pair", "phone", code[1].lower().replace("-", ""))
    return found[1]


def asks(home: ServedHome, agent: str, cents: int) -> str:
    """An agent that wants to give money back; the approval."""
    answer = home.client.post(f"/agents/{agent}/messages", {"text": f"refund {cents}", "thread": f"t{cents}"})
    assert answer.status in (200, 201, 202), answer
    return str(until(lambda: next(iter(waiting(home, cents)), None)))


def waiting(home: ServedHome, cents: int) -> list[str]:
    found = home.client.get("/approvals").body
    return [each["approval_id"] for each in found if each["arguments"] == {"cents": cents}]


def decided(home: ServedHome, approval: str) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: (record := home.client.get(f"/approvals/{approval}").body)["status"] != "pending" and record
    )
    return found


def channel(home: ServedHome, name: str) -> dict[str, Any]:
    (found,) = [each for each in home.client.get("/channels").body if each["channel"] == name]
    return dict(found)


def delivered(home: ServedHome, **fields: str) -> list[dict[str, Any]]:
    """The notices with these fields that came to the phone, which is on record a little later."""
    wanted = {**fields, "state": "delivered"}.items()
    return [each for each in home.client.get("/notices").body if wanted <= each.items()]


def about(ntfy: NtfyServer, topic: str, cents: int) -> dict[str, Any]:
    """The message on the phone that is about a refund."""
    found: dict[str, Any] = ntfy.until(
        lambda: next((each for each in ntfy.shown(topic) if f"{cents}" in each["message"] and "actions" in each), None)
    )
    return found


@pytest.mark.journey("channel test", "channel test --json", "channel test --store")
def test_a_test_comes_to_the_phone_and_its_button_is_heard(home: ServedHome, ntfy: NtfyServer, topic: str) -> None:
    file = ("--store", str(home.folder / "wakeful.db"))
    names = [each["channel"] for each in json.loads(wakeful(home, "channel", "list", "--json"))]
    row = str(names.index("phone") + 1)
    for number, words in enumerate(((row,), ("phone", "--json"), ("phone", *file)), 1):
        heard = channel(home, "phone")["heard_at"]
        said = wakeful(home, "channel", "test", *words)
        if "--json" in words:
            assert json.loads(said)["channel"] == "phone"
        else:
            assert "press OK on the phone" in said
        message = ntfy.until(lambda number=number: _tests(ntfy, topic)[number - 1 :])[0]
        ntfy.press(message, "OK")
        until(lambda heard=heard: channel(home, "phone")["heard_at"] != heard)


def _tests(ntfy: NtfyServer, topic: str) -> list[dict[str, Any]]:
    """The messages of tests on the phone, as they came."""
    return [each for each in ntfy.shown(topic) if "This is a test" in each["message"]]


def test_an_approval_is_given_on_a_phone_and_the_phone_then_says_so(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    approval = asks(home, "clerk", 101)
    message = about(ntfy, topic, 101)
    assert [each["label"] for each in message["actions"]] == ["Approve", "Reject", "Pause"]
    ntfy.press(message, "Approve")
    record = decided(home, approval)
    assert (record["status"], record["decided_by"]) == ("approved", "channel:ntfy:phone")
    until(lambda: home.client.get(f"/turns/{record['turn_id']}").body["state"] == "completed")
    (notice,) = until(lambda: delivered(home, about=approval))
    assert notice["to"] == "channel:phone"
    ntfy.until(lambda: any(each["message"] == "refund: approved by channel:ntfy:phone" for each in ntfy.shown(topic)))


def test_a_code_is_good_once_for_its_approval_and_wrong_ones_get_silence_and_are_counted(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    first, second = asks(home, "clerk", 102), asks(home, "clerk", 103)
    message, other = about(ntfy, topic, 102), about(ntfy, topic, 103)
    before = channel(home, "phone")["refused"]
    used = ntfy.press(message, "Reject")
    assert decided(home, first)["status"] == "rejected"
    there = len(ntfy.topics[topic])
    reply = message["actions"][0]["url"].rpartition("/")[2]
    approves = next(each["body"] for each in message["actions"] if each["label"] == "Approve")
    mixed = f"{other['actions'][0]['body'].partition('.')[0]}.{approves.partition('.')[2]}"
    for code in (used, approves, mixed, "nothing.a." + "x" * 22, "hello"):
        ntfy.publish({"topic": reply, "message": code})
    until(lambda: channel(home, "phone")["refused"] >= before + 4)
    assert home.client.get(f"/approvals/{second}").body["status"] == "pending"
    assert decided(home, first)["status"] == "rejected"
    told = [each["message"] for each in ntfy.topics[topic][there:]]
    assert [words for words in told if "nothing was changed" not in words] in (
        [],
        ["refund: rejected by channel:ntfy:phone"],
    )
    assert len(told) <= 2  # what was decided is said, and how to speak to whoever wrote words; to wrong codes nothing
    ntfy.press(other, "Reject")
    assert decided(home, second)["decided_by"] == "channel:ntfy:phone"


def test_what_is_decided_at_the_terminal_is_said_on_the_phone(home: ServedHome, ntfy: NtfyServer, topic: str) -> None:
    approval = asks(home, "clerk", 104)
    message = about(ntfy, topic, 104)
    here = home.client.post(f"/approvals/{approval}/decision", {"decision": "approved"}).body["approval"]["decided_by"]
    shown = ntfy.until(
        lambda: next((each for each in ntfy.shown(topic) if each.get("sequence_id") == message["id"]), None)
    )
    assert (shown["message"], "actions" in shown) == (f"refund: approved by {here}", False)
    ntfy.press(message, "Reject")  # a press that was on its way
    assert decided(home, approval)["decided_by"] == here


def test_a_press_while_the_process_is_dead_is_carried_out_once_by_the_next_one(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    approval = asks(home, "clerk", 105)
    message = about(ntfy, topic, 105)
    home.kill()
    ntfy.press(message, "Approve")
    home.start()
    record = decided(home, approval)
    assert (record["status"], record["decided_by"]) == ("approved", "channel:ntfy:phone")
    until(lambda: home.client.get(f"/turns/{record['turn_id']}").body["state"] == "completed")
    home.kill()
    home.start()
    events = home.client.get(f"/turns/{record['turn_id']}/events").body
    found = [each["type"] for each in (events["items"] if isinstance(events, dict) else events)]
    assert found.count("action.resolved") == 1 and found.count("tool.result") == 1


def test_an_agent_is_paused_from_the_phone(home: ServedHome, ntfy: NtfyServer, topic: str) -> None:
    approval = asks(home, "clerk", 106)
    message = about(ntfy, topic, 106)
    ntfy.press(message, "Pause")

    def control() -> tuple[str, str]:
        (row,) = [each for each in home.client.get("/agents").body if each["agent"] == "clerk"]
        return row["control"], row["changed_by"]

    until(lambda: control() == ("paused", "channel:ntfy:phone"))
    home.client.post("/control/agents/clerk/resume")
    ntfy.press(message, "Pause")  # its code was used
    ntfy.press(message, "Approve")
    assert decided(home, approval)["status"] == "approved"
    assert control()[0] == "running"


def asks_a_question(home: ServedHome, agent: str, words: str) -> str:
    """An agent that wants to know something; the question."""
    assert home.client.post(f"/agents/{agent}/messages", {"text": words, "thread": words}).status in (200, 201, 202)
    found = until(lambda: [each for each in home.client.get("/approvals").body if words in each["prompt"]])
    return str(found[0]["approval_id"])


def questions(home: ServedHome, turn: str) -> list[dict[str, Any]]:
    """What a turn waits for."""
    return [each for each in home.client.get("/approvals").body if each["turn_id"] == turn]


def code_in(text: str) -> str:
    found = re.findall(r"[A-Z2-7]{4}-[A-Z2-7]{4}", text)
    assert found, text
    return str(found[-1])


def test_a_question_is_answered_in_words_over_ntfy_and_the_words_are_no_operators(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    question = asks_a_question(home, "planner", "mortgage")
    message = ntfy.until(lambda: next((each for each in ntfy.shown(topic) if "mortgage" in each["message"]), None))
    assert [each["label"] for each in message["actions"]] == ["Reject", "Pause", "Answer"]
    assert message["actions"][2]["action"] == "view" and message["actions"][2]["url"] == message["click"]
    ntfy.write(message, f"{code_in(message['message']).lower()} Friday")
    record = decided(home, question)
    assert (record["decision"], record["decided_by"]) == ("answer", "channel:ntfy:phone")
    (asked,) = until(lambda: questions(home, record["turn_id"]))
    assert asked["arguments"] == {"day": "Friday"} and "words of channel:ntfy:phone" in asked["reason"]
    ntfy.until(lambda: any("ask_person: answered by channel:ntfy:phone" in e["message"] for e in ntfy.shown(topic)))
    home.client.post(f"/approvals/{asked['approval_id']}/decision", {"decision": "approved"})
    until(lambda: home.client.get(f"/turns/{record['turn_id']}").body["state"] == "completed")


def test_inversion_the_same_answer_typed_at_the_terminal_is_the_operators(home: ServedHome) -> None:
    question = asks_a_question(home, "planner", "taxes")
    wakeful(home, "approvals", "answer", question, "Friday")
    record = decided(home, question)
    until(lambda: home.client.get(f"/turns/{record['turn_id']}").body["state"] == "completed")
    events = home.client.get(f"/turns/{record['turn_id']}/events").body
    found = [each["type"] for each in (events["items"] if isinstance(events, dict) else events)]
    assert (found.count("action.required"), found.count("tool.result")) == (1, 2), "nothing but the question was asked"


def test_words_that_fit_nothing_change_nothing_and_are_answered_with_what_would_fit(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    approval = asks(home, "clerk", 107)
    message = about(ntfy, topic, 107)
    code = code_in(message["message"])

    def is_told(words: str) -> bool:
        return any(words in each["message"] for each in ntfy.shown(topic))

    for said, told in (
        ("is anybody there?", "write its code and your words"),
        (f"{code} sounds good", "begin with approve or reject"),
        ("AAAA-BBBB approve", "matches no open question"),
    ):
        ntfy.write(message, said)
        ntfy.until(lambda told=told: is_told(told))  # type: ignore[misc]
    assert home.client.get(f"/approvals/{approval}").body["status"] == "pending"
    ntfy.write(message, f"{code} reject: not this customer")
    record = decided(home, approval)
    assert (record["status"], record["note"]) == ("rejected", "not this customer")
    ntfy.until(lambda: is_told("refund: rejected by channel:ntfy:phone: not this customer"))


# --- Telegram -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chat(home: ServedHome, telegram: TelegramServer, topic: str) -> int:
    """A chat that is paired with the bot, as a person does it; after the phone, which is told where nobody says who."""
    words = ("telegram", "chat", "--server", telegram.url, "--token-env", "TELEGRAM_TOKEN", "--may", "decide", "--may")
    assert "/start" in wakeful(home, "channel", "add", *words, "send")
    telegram.write(STRANGER, "hello?")
    telegram.write(ME, "/start")
    (message,) = telegram.until(lambda: telegram.shown(ME))
    code = re.search(r"code is (\S+)", message["text"])
    assert code is not None
    assert "is paired" in wakeful(home, "channel", "pair", "chat", code[1])
    return ME


def test_a_chat_decides_and_strangers_get_silence(home: ServedHome, telegram: TelegramServer, chat: int) -> None:
    approval = asks(home, "desk", 201)
    message = telegram.until(lambda: next((each for each in telegram.shown(chat) if "201" in each["text"]), None))
    assert "parse_mode" not in message
    for row in message["reply_markup"]["inline_keyboard"]:
        assert all(len(each["callback_data"].encode()) <= 64 for each in row)
    code = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    before = channel(home, "chat")["strangers"]
    telegram.send_code(STRANGER, 1, code)  # who has the code and is not paired decides nothing
    telegram.write(STRANGER, "/start")
    until(lambda: channel(home, "chat")["strangers"] > before)
    assert home.client.get(f"/approvals/{approval}").body["status"] == "pending"
    answered = len(telegram.answered)
    telegram.press(chat, "Approve")
    record = decided(home, approval)
    assert (record["status"], record["decided_by"]) == ("approved", "channel:telegram:chat")
    telegram.until(lambda: message["text"].endswith("refund: approved by channel:telegram:chat"))
    assert message["reply_markup"] == {}
    telegram.until(lambda: len(telegram.answered) > answered)  # the press is acknowledged, sooner or later than this
    assert telegram.shown(STRANGER) == []


def test_updates_that_are_delivered_again_over_a_kill_count_once(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    approval = asks(home, "desk", 202)
    telegram.until(lambda: next((each for each in telegram.shown(chat) if "202" in each["text"]), None))
    home.kill()
    telegram.press(chat, "Reject")
    telegram.write(chat, "/send desk hello from the phone")
    home.start()
    assert decided(home, approval)["status"] == "rejected"
    until(lambda: phone_messages(home))
    with telegram.changed:
        again = list(telegram.updates)
    home.kill()
    with telegram.changed:
        telegram.updates = [*again, *telegram.updates]
    home.start()
    telegram.until(lambda: telegram.offsets[-1] is not None and not telegram.updates)
    (message,) = phone_messages(home)
    assert message["origin"]["sender_id"] == "channel:telegram:chat"
    assert message["authority_class"] == "external_evidence"  # whoever holds the phone is not the operator


def test_a_reply_in_a_chat_is_an_answer_once_whatever_is_killed(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    question = asks_a_question(home, "chatty", "insurance")
    message = telegram.until(lambda: next((each for each in telegram.shown(chat) if "insurance" in each["text"]), None))
    shown = {"text": message["text"]}
    home.kill()
    telegram.write(STRANGER, "Monday", reply_to=shown)
    telegram.write(chat, "Sunday", reply_to=shown)
    telegram.write(chat, "Saturday", reply_to=shown)
    home.start()
    record = decided(home, question)
    assert (record["decision"], record["decided_by"]) == ("answer", "channel:telegram:chat")
    (asked,) = until(lambda: questions(home, record["turn_id"]))
    assert asked["arguments"] == {"day": "Sunday"}, "the first answer counts"
    telegram.until(lambda: any("only the first answer counts" in each["text"] for each in telegram.shown(chat)))
    answered = "wakeful/ask_person: answered by channel:telegram:chat"
    telegram.until(lambda: any(answered in each["text"] for each in telegram.shown(chat)))
    telegram.write(chat, "Saturday after all", reply_to=shown)
    telegram.until(lambda: any("matches no open question" in each["text"] for each in telegram.shown(chat)))
    assert telegram.shown(STRANGER) == []


def phone_messages(home: ServedHome) -> list[dict[str, Any]]:
    """Messages of the agent that came over a channel."""
    events = home.client.get("/agents/desk/events?limit=500").body
    return [each["payload"] for each in events if each["payload"].get("message_kind") == "channel_event"]


def test_a_service_that_wants_to_be_left_alone_is_left_alone_and_the_notice_arrives(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    telegram.plan("sendMessage", 429, description="Too Many Requests", parameters={"retry_after": 1})
    approval = asks(home, "desk", 203)
    telegram.until(lambda: next((each for each in telegram.shown(chat) if "203" in each["text"]), None))
    (notice,) = until(lambda: delivered(home, about=approval))
    assert (notice["agent"], notice["attempts"]) == ("desk", 2), "the first was refused"
    telegram.press(chat, "Reject")
    assert decided(home, approval)["status"] == "rejected"


def test_another_program_that_polls_the_bot_is_told_once_and_it_goes_on_when_that_ends(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    telegram.plan("getUpdates", 409, times=1_000, description="Conflict: terminated by other getUpdates request")
    telegram.write(chat, "hello")  # ends the wait that is under way
    trouble = until(lambda: channel(home, "chat")["trouble"])
    assert "only one can" in trouble
    telegram.give_up_faults()
    telegram.write(chat, "are you there?")  # the first poll that works ends at once with it
    until(lambda: channel(home, "chat")["trouble"] == "")
    told = [each for each in home.client.get("/notices").body if "only one can" in each["text"]]
    assert len(told) == 1


def test_a_service_that_answers_with_nonsense_is_asked_again_and_the_phone_is_heard_then(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    def polls() -> int:
        return sum(name == "getUpdates" for name, _ in telegram.requests)

    heard = len(phone_messages(home))
    telegram.plan("getUpdates", 200, times=1_000, ok=True, result=None)
    telegram.write(STRANGER, "hello")  # ends the wait that is under way
    before = polls()
    telegram.until(lambda: polls() >= before + 3)
    telegram.give_up_faults()
    telegram.write(chat, "/send desk are you still there?")
    until(lambda: len(phone_messages(home)) > heard)


def test_half_of_a_letter_from_a_phone_is_no_reason_to_hear_nothing_more(
    home: ServedHome, telegram: TelegramServer, chat: int
) -> None:
    heard = len(phone_messages(home))
    telegram.write(chat, "/send desk half of a letter: \ud83d")
    telegram.write(chat, "/send desk and a whole sentence")
    until(lambda: len(phone_messages(home)) >= heard + 2)


def test_a_key_that_ran_dry_is_told_once_and_its_agents_go_on_by_themselves(
    home: ServedHome, ntfy: NtfyServer, topic: str
) -> None:
    (home.folder / "dry").touch()
    for text in ("dig", "dig deeper"):
        home.client.post("/agents/miner/messages", {"text": text})
    told = ntfy.until(lambda: [each for each in ntfy.shown(topic) if "has no quota left" in each["message"]])
    until(lambda: agent_record(home, "miner")["control"] == "paused")
    (home.folder / "dry").unlink()  # somebody paid
    until(lambda: agent_record(home, "miner")["control"] == "running")
    until(lambda: "completed" in {each["state"] for each in home.client.get("/turns?agent=miner").body})
    again = [each for each in ntfy.shown(topic) if "has no quota left" in each["message"]]
    assert len(told) == len(again) == 1
    (notice,) = until(lambda: delivered(home, cause="provider.parked"))
    assert notice["to"] == "channel:phone"


def agent_record(home: ServedHome, name: str) -> dict[str, Any]:
    (found,) = [each for each in home.client.get("/agents").body if each["agent"] == name]
    return dict(found)


def test_a_server_that_cannot_be_reached_and_a_kind_that_is_none_are_said(home: ServedHome) -> None:
    wakeful(home, "channel", "add", "ntfy", "lost", "--server", f"http://127.0.0.1:{free_port()}")
    until(lambda: "lost: the last message was not sent: " in wakeful(home, "channel", "list"))
    assert "lost is removed" in wakeful(home, "channel", "remove", "lost")
    line = [sys.executable, "-m", "wakeful.surfaces.cli", "channel", "add", "ntf"]
    found = subprocess.run(line, env=home.environment, capture_output=True, text=True, timeout=240, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "Error: there is no kind of channel 'ntf'\nHint: did you mean ntfy?\n"


def test_no_token_topic_or_code_is_in_the_log_or_in_what_the_process_says(
    home: ServedHome, ntfy: NtfyServer, topic: str, telegram: TelegramServer, chat: int
) -> None:
    approval = asks(home, "clerk", 109)
    ntfy.press(about(ntfy, topic, 109), "Reject")
    decided(home, approval)
    wakeful(home, "store", "export", str(home.folder / "log.jsonl"))
    raw = [each for each in home.folder.rglob("*") if each.is_file() and each.name != "secrets.env"]
    written = b"".join(each.read_bytes() for each in raw)
    assert b"channel.input_received" in written
    actions = [action for each in ntfy.topics[topic] for action in each.get("actions", ())]
    codes = [action["body"] for action in actions if "body" in action]
    codes += re.findall(r"[A-Z2-7]{4}-[A-Z2-7]{4}", "".join(each["message"] for each in ntfy.topics[topic]))
    pairing = [re.search(r"code is (\S+)", each["message"]) for each in ntfy.topics[topic]]
    secrets = [TelegramServer.TOKEN, topic, *ntfy.topics, *codes, *(found[1] for found in pairing if found)]
    assert len(codes) > 3
    assert [secret for secret in secrets if secret.encode() in written] == []

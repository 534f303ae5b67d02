"""The terminal UI: one conversation, a composer that is always there, overlays that Esc closes."""

from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome
from kit.surfaces.watched_screen import watching


@pytest.mark.spec("HOL-CONSOLE-02", "HOL-CONSOLE-06", "HOL-CONSOLE-12", "HOL-CONSOLE-13")
async def test_what_is_typed_is_sent_and_the_brief_comes_into_the_same_conversation(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        await screen.press_letters("good morning")
        await screen.press("enter")
        await screen.until(lambda: "clerk you said:" in screen.text.partition("you  good morning")[2])
        assert len(screen.console.query("#talk")) == 1, "there is one conversation"
    first, second = client.get("/agents/clerk/transcript").body[-2:]
    assert (first["kind"], first["text"], second["kind"]) == ("operator_message", "good morning", "brief")


@pytest.mark.spec("HOL-CONSOLE-04", "HOL-CONSOLE-09")
async def test_tab_goes_from_agent_to_agent_and_children_stand_below_their_parents(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        await screen.until("> to clerk:")
        await screen.press("tab")
        await screen.until("> to keeper:")
        await screen.press("shift+tab", "shift+tab")
        await screen.until("> to ops:")
        await screen.type("Have a hole made.")
        shown = await screen.until("└ ")
        assert ">ops" in shown
        child = next(
            each["agent"]
            for each in client.get("/agents?private=true").body
            if "ops" in each["agent"][:4] and each["lineage_parent_agent_id"] == "ops"
        )
        await screen.press("f4")
        await screen.until("CHILD AGENTS")
        assert child[:10] in await screen.until(child[:10])
        await screen.until("[o] output")
        await screen.press("o")
        await screen.until("─ Output: ")
        await screen.press("escape")
        await screen.until("CHILD AGENTS")


@pytest.mark.spec("HOL-CONSOLE-05", "HOL-CONSOLE-07", "HOL-CONSOLE-14", "HOL-CONSOLE-15")
async def test_overlays_come_and_go_and_the_composer_keeps_its_keys(home: ServedHome) -> None:
    async with watching(home.socket, agent="keeper") as screen:
        await screen.type("remember the milk")
        await screen.until(lambda: "keeper you said:" in screen.text.partition("you  remember the milk")[2])
        headings = {"f1": "Help", "f2": "Agents", "f3": "Transcript: keeper", "f4": "Tasks: keeper", "f7": "Actions: k"}
        for key, heading in headings.items():
            await screen.press(key)
            await screen.until(f"─ {heading}")
        await screen.press("f5")
        assert "message.admitted" in await screen.until("message.admitted")
        await screen.press_letters("half a thought")
        assert "half a thought" in screen.text, "typing needs no other pane"
        await screen.press("escape")
        await screen.until("─ Actions: k")
        assert screen.console.composer.text == "half a thought", "what lies below an overlay is not touched by Esc"
        for _ in headings:
            await screen.press("escape")
        await screen.until(lambda: not screen.console.overlays)
        assert "half a thought" in screen.text
        await screen.type(", sent")
        await screen.until("you  half a thought, sent")


@pytest.mark.spec("HOL-CONSOLE-03", "HOL-CONSOLE-01")
async def test_closing_it_stops_nothing(home: ServedHome, client: HomeClient) -> None:
    before = client.get("/control/runtime/status").body
    async with watching(home.socket, agent="clerk") as screen:
        await screen.type("refund 12")
        await screen.until("1 NEEDS YOU")
        await screen.press("ctrl+q")
    (approval,) = client.get("/approvals").body
    client.post(f"/approvals/{approval['approval_id']}/decision", {"decision": "approved"})
    assert client.until_over(approval["turn_id"])["state"] == "completed"
    after = client.get("/control/runtime/status").body
    assert (after["pid"], after["started_at"]) == (before["pid"], before["started_at"])


@pytest.mark.spec("HOL-CONSOLE-16")
async def test_the_activity_of_a_turn_goes_when_the_next_message_is_sent(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        await screen.type("/display verbose")
        await screen.type("refund 13")
        await screen.until(" clerk .. waits for you: wants to call refund")
        await screen.type("and then this")
        await screen.until("you  and then this")
        shown = [screen.console.activity.words]
        (approval,) = client.get("/approvals").body
        client.post(f"/approvals/{approval['approval_id']}/decision", {"decision": "approved"})

        def is_answered() -> bool:
            shown.append(screen.console.activity.words)
            return "you said:" in screen.text.partition("and then this")[2]

        await screen.until(is_answered)
        assert not [words for words in shown if "refund" in words], (
            "nothing of the earlier turn is shown for the new one"
        )
        assert "ok refund" in screen.text, "the conversation has it"


@pytest.mark.spec("HOL-CONSOLE-08", "HOL-CONSOLE-10")
async def test_workspace_and_access_are_shown_and_changed_here(
    home: ServedHome, client: HomeClient, tmp_path: Path
) -> None:
    client.until_ended(client.post("/agents/keeper/messages", {"text": "hello"}).body)
    async with watching(home.socket, agent="keeper", size=(160, 50)) as screen:
        shown = await screen.until("workspace ")
        assert "(direct, canonical_root)" in shown
        assert "no commands" in shown
        await screen.press("f7")
        await screen.until("[w] /attach")
        await screen.press("w")
        await screen.until("> /attach:")
        screen.console.composer.text = str(tmp_path)
        await screen.press("enter")
        await screen.until(f"keeper may work in {str(tmp_path)[:20]}")
        await screen.type(f"/use {tmp_path}")
        await screen.until(lambda: client.get("/agents/keeper/workspaces").body["cwd"] == str(tmp_path))
        await screen.until("commands sandboxed")
        await screen.press("x")
        await screen.until(lambda: client.get("/agents/keeper/workspaces").body["active_workspace_id"] == "agent_home")
        await screen.press("g")
        await screen.until("Prompt: keeper")
        (other,) = [
            each["workspace_id"]
            for each in client.get("/agents/keeper/workspaces").body["attached_workspaces"]
            if not each["active"]
        ]
        await screen.type(f"/detach {other}")
        await screen.until(lambda: len(client.get("/agents/keeper/workspaces").body["attached_workspaces"]) == 1)


async def test_a_folder_is_meant_from_where_the_screen_was_begun(
    home: ServedHome, client: HomeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stock").mkdir()
    monkeypatch.chdir(tmp_path)

    def there() -> list[str]:
        found = client.get("/agents/keeper/workspaces").body["attached_workspaces"]
        return [each["workspace_id"] for each in found if each["workspace_anchor"] == str(tmp_path / "stock")]

    async with watching(home.socket, agent="keeper") as screen:
        await screen.type("/attach stock")
        await screen.until(there)
        await screen.type(f"/detach {there()[0]}")
        await screen.until(lambda: not there())


async def test_an_agent_is_paused_and_resumed_from_here(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="keeper") as screen:
        await screen.type("/pause")
        await screen.until("PAUSED")
        assert client.get("/agents/keeper/status").body["changed_by"].startswith("local:")
        await screen.type("/resume")
        await screen.gone("PAUSED")


@pytest.mark.spec("HOL-DISPLAY-08", "HOL-DISPLAY-09", "HOL-DISPLAY-10")
async def test_the_display_mode_is_changed_by_name_and_number(home: ServedHome) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        await screen.type("slow 0.02")
        await screen.until("clerk finished")
        assert "ok work_slowly" not in screen.text
        await screen.type("/display 4")
        await screen.until("ok work_slowly")
        assert "| work_slowly(seconds=0.02)" not in screen.text
        await screen.type("/display debug")
        await screen.until("| work_slowly(seconds=0.02)")
        await screen.type("/display 3")
        await screen.gone("ok work_slowly")
        await screen.type("/display trace")
        await screen.until("there is no display mode 'trace'")


async def test_a_command_that_is_none_is_not_sent_and_not_lost(home: ServedHome, client: HomeClient) -> None:
    before = len(client.get("/agents/clerk/transcript").body)
    async with watching(home.socket, agent="clerk") as screen:
        await screen.type("/paws")
        await screen.until("there is no command /paws. Did you mean /pause?")
        assert screen.console.composer.text == "/paws"
    assert len(client.get("/agents/clerk/transcript").body) == before

"""Approvals and questions, answered where they are shown."""

from typing import Any

import pytest

from kit.surfaces.served_home import HomeClient, ServedHome
from kit.surfaces.watched_screen import Screen, watching


def decided(client: HomeClient, approval: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/approvals/{approval}").body
    return found


async def asked(screen: Screen, client: HomeClient, cents: int) -> str:
    """The approval of a refund, once the overlay shows it and nothing else."""
    await screen.until("nothing needs you")
    await screen.type(f"refund {cents}")
    await screen.until("1 NEEDS YOU (F6)")
    await screen.press("f6")
    await screen.until(f"cents={cents}")
    (found,) = client.get("/approvals").body
    return str(found["approval_id"])


async def test_a_call_is_approved_rejected_edited_and_allowed_for_good(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        first = await asked(screen, client, 11)
        await screen.press("y")
        await screen.until("nothing needs you")
        shown = decided(client, first)
        assert (shown["status"], shown["decided_by"][:6]) == ("approved", "local:")

        second = await asked(screen, client, 22)
        await screen.press("n")
        await screen.until("> no, because")
        await screen.type("too much")
        await screen.until(lambda: decided(client, second)["status"] == "rejected")
        assert decided(client, second)["note"] == "too much"

        third = await asked(screen, client, 33)
        await screen.press("e")
        await screen.until('{"cents": 33}')
        screen.console.composer.text = '{"cents": '
        await screen.press("enter")
        await screen.until("the arguments are not JSON")
        assert decided(client, third)["status"] == "pending", "nothing changed"
        await screen.press("e")
        screen.console.composer.text = '{"cents": 3}'
        await screen.press("enter")
        await screen.until(lambda: decided(client, third)["status"] != "pending")
        await screen.until(lambda: "refunded 3" in str(client.get("/agents/clerk/events?limit=500").body))

        fourth = await asked(screen, client, 44)
        await screen.press("v")
        await screen.until(f"approval_id: {fourth[:20]}")
        await screen.press("exclamation_mark")
        await screen.until("> always")
        await screen.press("enter")
        await screen.until(lambda: client.get("/approvals/rules").body)
        (rule,) = client.get("/approvals/rules").body
        client.ask("DELETE", f"/approvals/rules/{rule['rule_id']}")


async def test_letters_of_a_message_decide_nothing(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        approval = await asked(screen, client, 55)
        await screen.press("escape")
        await screen.type("yes no")
        await screen.until(lambda: "yes no" in [each["text"] for each in client.get("/agents/clerk/transcript").body])
        assert decided(client, approval)["status"] == "pending"
        await screen.press("f6")
        await screen.until("cents=55")
        await screen.press_letters("maybe y")
        assert decided(client, approval)["status"] == "pending", "while something is typed, letters are letters"
        screen.console.composer.text = ""
        await screen.press("y")
        await screen.until(lambda: decided(client, approval)["status"] == "approved")


@pytest.mark.spec("HOL-CONSOLE-15")
async def test_esc_leaves_an_answer_before_the_overlay_it_belongs_to(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        approval = await asked(screen, client, 66)
        await screen.press("n")
        await screen.until("> no, because")
        await screen.press("escape")
        await screen.until("> to clerk:")
        assert "─ Needs you" in screen.text
        await screen.press("escape")
        await screen.gone("─ Needs you")
        assert decided(client, approval)["status"] == "pending"
        client.post(f"/approvals/{approval}/decision", {"decision": "rejected"})


async def test_one_that_somebody_else_decided_stays_decided(home: ServedHome, client: HomeClient) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        approval = await asked(screen, client, 77)
        shown = screen.console.overlays[-1]
        wish = shown.press("y")  # somebody looks at it
        client.post(f"/approvals/{approval}/decision", {"decision": "rejected", "reason": "from elsewhere"})
        screen.console._wish(wish)
        await screen.until(" ! ")
        assert decided(client, approval)["note"] == "from elsewhere"


async def test_a_letter_never_falls_on_an_approval_that_came_in_the_place_of_another(
    home: ServedHome, client: HomeClient
) -> None:
    """Two wait. The one that is shown is decided elsewhere, just before somebody presses y."""
    async with watching(home.socket, agent="clerk") as screen:
        first = await asked(screen, client, 88)
        client.post("/agents/clerk/messages", {"text": "refund 99", "thread": "other"})
        await screen.until("2 NEEDS YOU")
        second = next(each["approval_id"] for each in client.get("/approvals").body if each["approval_id"] != first)
        client.post(f"/approvals/{first}/decision", {"decision": "rejected", "reason": "from elsewhere"})
        await screen.until("refund of clerk: rejected by")
        assert "[y] once" not in screen.text
        await screen.press_letters("y")
        assert decided(client, second)["status"] == "pending"
        await screen.press("backspace")
        await screen.until("1 needs you: Enter shows the next")
        await screen.press("enter")
        await screen.until("[y] once")
        await screen.press("y")
        await screen.until(lambda: decided(client, second)["status"] == "approved")
        await screen.until("refund of clerk: approved by you")
        await screen.until("nothing needs you")


async def test_a_call_that_is_too_long_for_the_pane_is_let_through_once_it_was_shown(
    home: ServedHome, client: HomeClient
) -> None:
    async with watching(home.socket, agent="clerk") as screen:
        await screen.until("nothing needs you")
        await screen.type("code 60")
        await screen.until("1 NEEDS YOU (F6)")
        await screen.press("f6")
        shown = await screen.until("v shows all of it")
        assert "|     step(0)" in shown and "[y]" not in shown and "step(29)" not in shown
        (found,) = client.get("/approvals").body
        await screen.press("y")
        screen.console.composer.text = ""
        await screen.press("v")
        await screen.until("[y] once")
        assert decided(client, found["approval_id"])["status"] == "pending"
        await screen.press("y")
        await screen.until(lambda: decided(client, found["approval_id"])["status"] == "approved")

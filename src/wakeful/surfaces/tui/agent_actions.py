"""What is done to one agent from the composer: control, folders, its prompt, why it waits."""

from typing import NamedTuple

from wakeful.surfaces.tui.home_client import HomeClient

NO_AGENT = "there is no agent yet; make one: wakeful agent create NAME"
HOME = "agent_home"


class Told(NamedTuple):
    """What came of it: a line, or with a heading a text to be read."""

    words: str
    heading: str = ""


async def act(client: HomeClient, agent: str, name: str, words: str) -> Told:
    """Carry out a command. Raises what the client raises."""
    match name:
        case "pause" | "resume" | "stop":
            await client.control(agent, name)
            return Told(f"{agent}: {name} was accepted")
        case "attach":
            await client.attach(agent, words)
            return Told(f"{agent} may work in {words}")
        case "use":
            is_path = "/" in words or words.startswith(("~", "."))
            await client.use(agent, **({"path": words} if is_path else {"workspace_id": words}))
            return Told(f"{agent} works in {words} from its next turn on")
        case "exit":
            await client.use(agent, workspace_id=HOME)
            return Told(f"{agent} works in its own home from its next turn on")
        case "detach":
            await client.detach(agent, words)
            return Told(f"{words} was taken from {agent}")
        case "why":
            return Told(str((await client.why(agent))["sentence"]), f"Why: {agent}")
        case _:
            turn = await client.newest_turn(agent)
            if turn is None:
                return Told(f"{agent} had no turn yet")
            found = await client.prompt(turn["turn_id"])
            return Told(str(found["system_prompt"]), f"Prompt: {agent}, {turn['turn_id']}")

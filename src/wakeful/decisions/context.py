"""From a turn's configuration to the frame its requests begin with: stable blocks first.

The frame is the same for every request of a turn, whatever rounds came before: it rests on the configuration alone.
"""

import hashlib
import json

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.frames import PromptContentBlock, ProviderPromptCache, ProviderPromptFrame


def frame_of(config: TurnConfig, agent_id: str, log_position: int, section: str = "") -> ProviderPromptFrame:
    """The frame of a turn that begins at this position of the agent's log.

    The log is chained: a position in it stands for everything before, and the conversation is not hashed again.
    """
    key = prompt_cache_key(config)
    context = hashlib.sha256(f"{key}\n{agent_id}\n{log_position}".encode())
    blocks = []
    if config.instructions:
        blocks.append(PromptContentBlock(text=config.instructions, stability="agent_scoped", cache_breakpoint=True))
    if section:  # of this run alone, after everything that is the same in the next
        blocks.append(PromptContentBlock(text=section, stability="turn_scoped"))
    return ProviderPromptFrame(
        system_prompt="\n\n".join(block.text for block in blocks),
        system_blocks=tuple(blocks),
        cache=ProviderPromptCache(
            agent_id=agent_id, prompt_cache_key=key, context_fingerprint=f"sha256:{context.hexdigest()}"
        ),
    )


def prompt_cache_key(config: TurnConfig) -> str:
    """Rotates when the guidance or the tools change, and with nothing else: sessions of one agent share it."""
    surface = json.dumps(
        [
            config.agent_name,
            config.instructions,
            [[tool.name, tool.description, tool.input_schema] for tool in config.tools],
            config.injected_tool_args,
        ],
        sort_keys=True,
    )
    return "wk-" + hashlib.sha256(surface.encode()).hexdigest()[:32]

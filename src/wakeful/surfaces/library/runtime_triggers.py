"""The triggers of a `Runtime`: addresses at which programs outside reach its agents, and what comes to them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.contracts.triggers import Signature
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.views.trigger_records import DeliveryReceipt, TriggerRecord


@checked_arguments
@open_to_tools("deliver", "triggers")
class RuntimeTriggers:
    """What `Runtime` does with triggers. A trigger is named by its id, as `AGENT/NAME`, or by `AGENT` alone."""

    async def create_trigger(
        self,
        agent: str,
        name: str = "",
        *,
        say: str = "",
        thread: str = "main",
        signature: "Signature | None" = None,
        signing_env: str | None = None,
        by: str = "program",
    ) -> "TriggerRecord":
        """A trigger through which a program outside sends an agent messages. Without a name: the agent's default one.

        At a delivery the agent is told `say`, and beneath it what was delivered. With `signature` (`hub_sha256` or
        `standard_webhooks`) only deliveries are taken that were signed with the secret in the environment variable
        `signing_env`. Raises AgentNotFound, or InvalidRequest for a name that is taken.
        """
        from wakeful.service.commands.trigger_control import create_trigger

        return await create_trigger(
            self._here.engine,
            self._here.refusals.refused,
            agent,
            name,
            say=say,
            thread=thread,
            signature=signature,
            signing_env=signing_env,
            by=by,
        )

    async def triggers(self, agent: str | None = None) -> "list[TriggerRecord]":
        """The triggers of an agent or of all agents, by name. Their addresses are not in it."""
        from wakeful.service.commands.trigger_control import list_triggers

        return await list_triggers(self._here.engine.store, self._here.refusals.refused, agent)

    async def rotate_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Give a trigger another address; the one before is refused from now on."""
        from wakeful.service.commands.trigger_control import rotate_trigger

        return await rotate_trigger(self._here.engine, self._here.refusals.refused, trigger, by=by, reason=reason)

    async def revoke_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Let a trigger take nothing any more. `create_trigger` makes it again, with another address."""
        from wakeful.service.commands.trigger_control import revoke_trigger

        return await revoke_trigger(self._here.engine, self._here.refusals.refused, trigger, by=by, reason=reason)

    async def trigger_url(self, trigger: str, *, by: str = "program", purpose: str = "") -> str:
        """The address of a trigger: whoever has it can wake the agent. That it was given to you is on record.

        It begins with the `public_url` of the runtime; without one it is a path.
        """
        from wakeful.service.commands.trigger_control import trigger_url

        found = await trigger_url(self._here.engine, trigger, to=by, base=self._here.public_url, purpose=purpose)
        return found.trigger_url

    async def deliver(
        self, address: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> "DeliveryReceipt":
        """Hand over what came to the address of a trigger: the raw bytes of the body, and the headers.

        `address` is a whole URL, its path or its last part. The answer says `accepted`, `duplicate` or `refused`, with
        the reason. Nothing that a sender can do raises. What was accepted survives a power cut.
        """
        from wakeful.service.commands.triggers import deliver

        return await deliver(self._here.engine, address, body, headers or {}, tally=self._here.refusals)

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError

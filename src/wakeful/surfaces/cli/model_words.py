"""Providers and models in a few words, the same in every command. Of a key there is never more than its variable."""

from decimal import Decimal

from wakeful.contracts.catalogue import Capabilities, ModelProbe, ProviderState, RetryPolicy
from wakeful.surfaces.cli.shown_values import duration, one_line, plain

_CAN = {
    "tools": "tools",
    "parallel_tool_calls": "parallel",
    "forced_tool_choice": "forced",
    "images": "images",
    "files": "files",
    "audio": "audio",
    "structured_output": "schema",
    "reasoning": "reasoning",
}


def key_words(provider: ProviderState) -> str:
    """`in OPENAI_API_KEY`, `missing: set OPENAI_API_KEY`, `not needed`."""
    if provider.key == "found":
        return f"in {provider.key_variable}"
    if provider.key == "missing":
        return f"missing: set {provider.key_variable}" if provider.key_variable else "missing"
    return "not needed" if provider.status == "available" else "-"


def can(able: Capabilities) -> str:
    """The capabilities that are there, in one word each."""
    return " ".join(word for name, word in _CAN.items() if getattr(able, name)) or "words only"


def tokens(count: int | None) -> str:
    """`200k`, `1M`; `?` when nobody knows."""
    if count is None:
        return "?"
    return f"{count / 1_000_000:.3g}M" if count >= 1_000_000 else f"{count / 1000:.3g}k"


def million(amount: str) -> str:
    """An amount without zeros that say nothing: `2.50` as `2.5`, `10` as `10`."""
    text = f"{Decimal(amount):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def retry_words(policy: RetryPolicy) -> str:
    """`3 quick attempts from 0.2 s, then waits of up to 60 s`."""
    first, longest = (f"{ms / 1000:g} s" for ms in (policy.first_backoff_ms, policy.longest_backoff_ms))
    return f"{policy.max_attempts} quick attempts from {first}, then waits of up to {longest}"


def probe_lines(probe: ModelProbe) -> list[str]:
    """The result of a live call; a failure ends with the next step."""
    took = duration(probe.duration_ms)
    if not probe.ok:
        kind = f" ({probe.failure_kind})" if probe.failure_kind else ""
        lines = [f"{plain(probe.model_ref)} did not answer{kind}, after {took}", f"  {one_line(probe.message, 500)}"]
        return [*lines, *(f"  {plain(line)}" for line in probe.advice.splitlines())]
    said = f'"{one_line(probe.said)}"' if probe.said else f"no words ({probe.stop_reason})"
    lines = [f"{plain(probe.model_ref)} answered in {took}:", f"  {said}"]
    if probe.usage is not None:
        used = f"{probe.usage.input_tokens} tokens in, {probe.usage.output_tokens} out"
        thought = f" ({probe.usage.reasoning_tokens} of them thoughts)" if probe.usage.reasoning_tokens else ""
        lines.append(f"  {used}{thought}; {_cost(probe)}")
    else:
        lines.append("  it reported no tokens; its cost is unknown")
    return [*lines, f"  request {plain(probe.request_id)}"] if probe.request_id else lines


def _cost(probe: ModelProbe) -> str:
    if probe.cost is None:
        return "its cost is unknown: there is no price for this model"
    day = f" of {probe.price_date}" if probe.price_date else ""
    return f"{million(probe.cost)} {probe.currency} by {probe.price_list}{day}"

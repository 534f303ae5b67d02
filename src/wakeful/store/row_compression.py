"""The payloads of a row, packed: most of an event is the names of its fields, which are the same in every row.

Deflate with a dictionary of what events usually say. A dictionary is a contract: rows name it by number, and it never
changes; a better one gets the next number. A long payload is stored as it is: packing it would hold up the loop.
"""

import zlib

PLAIN, FIRST = 0, 1
LONGEST = 16_384
"""Bytes. Longer payloads are not packed."""
_BITS, _MEMORY, _LEVEL = -12, 4, 1
"""A window of 4 KB, dictionary included: 7 us for a usual row."""

# The most frequent comes last. Nothing in here may ever be changed.
_FIRST = (
    b'"failure_kind":"rate_limited","message":"","stage":"body","retryable":true,"http_status":429,"error_type":"'
    b'{"action_id":"appr_","action_type":"approval","tool_name":"","expires_at":1,"status":"approved","resolver":"'
    b'{"message_id":"msg_01","item":{"role":"user","parts":[{"type":"text","text":""}],"origin":"person"},'
    b'"fingerprint":"","prompt_preview":"","key":""}{"turn_index":1,"message_ids":["msg_01"],"agent_name":"",'
    b'"config_ref":{"digest":"sha256:","size":1588,"media_type":"application/json"},"model_ref":"openai:gpt-anthropic:'
    b'claude-","limits":{"model_calls":200,"tool_calls":1000,"seconds":1800.0,"max_steps":200,"depth":3,"subtasks":128,'
    b'"width":8,"per_tool":{},"result_bytes":50000,"final_answer_reserve":true,"schema_retries":3},"window_from":1}'
    b'{"context_id":"ctx_turn_01","browser_refs":[{"ref":"main","kind":"session","freshness":"current"}],'
    b'"policy_facts":[{"ref":"profile:chat","kind":"policy","freshness":"current"},{"ref":"policy:gate","kind":"policy",'
    b'"digest":"sha256:","freshness":"current"},{"ref":"derived_from:operator_instruction","kind":"policy",'
    b'"freshness":"current","trust":"operator_instruction"}],"history_refs":[{"ref":"","kind":"history","tokens":8,'
    b'"freshness":"current"}],"tokens_used":8,"tokens_are_estimate":true,"context_build_ms":0.061}'
    b'{"routing_id":"route_turn_01","requested_provider":"openai","requested_model":"","required_capabilities":'
    b'["tools"],"candidates":[{"model_ref":"","capabilities":[],"declared":false,"price_known":true,"limit_state":'
    b'"unknown"}]}{"routing_id":"route_turn_01","mode":"single_candidate","decision_source":"agent_config",'
    b'"decision_reason":"it is the model that was asked for, and the only candidate","requested_provider":"openai",'
    b'"requested_model":"","selected_model_ref":"scripted:inline","candidate_count":1}{"reason":"turn_started",'
    b'"catalog_ref":{"digest":"sha256:","size":363,"media_type":"application/json"},"offered":1,"withheld":1}'
    b'{"turn_index":1,"stop_reason":"natural","retryable":false,"duration_ms":28.345,"active_ms":28.345,"token_usage":'
    b'{"input_tokens":140,"output_tokens":14,"total_tokens":154},"model_calls":14,"tool_calls":13,"steps":14,'
    b'"final_preview":""}{"tool_name":"","item":{"role":"tool","call_id":"call_","name":"","parts":[{"type":"text",'
    b'"text":""}],"is_error":false},"preview":"","size_bytes":4,"duration_ms":0.03,"permission_ref":"","metadata":'
    b'{"status":"success","started_at":179,"completed_at":179,"execution_time_ms":0.0,"approval_status":'
    b'"not_required","injected_args":{}}}{"model_ref":"scripted:inline","items":9}{"model_ref":"scripted:inline",'
    b'"attempt":1,"stop_reason":"tool_calls","token_usage":{"input_tokens":1,"output_tokens":1,"total_tokens":1,'
    b'"cached_input_tokens":1,"reasoning_tokens":1},"context_build_ms":0.01,"provider_round_ms":0.2,'
    b'"provider_started_at":"2026-11-17T04:02:11.441Z","provider_completed_at":"2026-"}'
    b'{"model_ref":"scripted:inline","amount":"0.00","price_list":"free"}{"item":{"role":"assistant","parts":'
    b'[{"type":"text","text":""},{"type":"call","call_id":"call_","name":"","arguments":{"},"opaque":{}}],'
    b'"provider":"scripted"},"calls":[{"call_id":"call_","name":"","malformed":false}],"text_preview":""}'
    b'{"decision":"allow","decision_reason":"the tool is offered in this turn and no rule forbids it"}'
    b'{"tool_name":"","safe_args":{"},"args_sha256":"sha256:","permission_ref":"@-1","is_read_only":true,'
    b'"is_concurrency_safe":true,"is_destructive":false,"batch_id":"turn_01/","position":0,"scheduling":"parallel",'
    b'"dispatched":true,"effect":"irreversible","effect":"keyed","effect":"pure","idempotency_key":"wk-'
)


_PACKER = zlib.compressobj(_LEVEL, zlib.DEFLATED, _BITS, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _FIRST)
"""Has read the dictionary, and is copied for each row: that takes a third less than reading it again."""


def pack(payloads: bytes) -> bytes:
    """As short as it gets: the number of the dictionary, a checksum, then what it was packed into."""
    if len(payloads) <= LONGEST:
        packer = _PACKER.copy()
        packed = packer.compress(payloads) + packer.flush()
        if len(packed) < len(payloads):
            return _sealed(FIRST, packed)
    return _sealed(PLAIN, payloads)


def unpack(packed: bytes, length: int) -> bytes:
    """So many bytes. Raises ValueError when that is not what was packed."""
    number, inside = packed[:1], packed[_INSIDE:]
    if packed[1:_INSIDE] != zlib.crc32(inside).to_bytes(4, "big"):
        # The chain vouches for what is said. A bit that changes nothing of it is noticed here.
        raise ValueError("the packed row does not match its checksum")
    if number == bytes((PLAIN,)):
        payloads = inside
    elif number == bytes((FIRST,)):
        unpacker = zlib.decompressobj(_BITS, zdict=_FIRST)
        try:
            payloads = unpacker.decompress(inside, length + 1)  # no row is let grow beyond what its header says
        except zlib.error as error:
            raise ValueError(f"the packed row cannot be unpacked: {error}") from error
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("the packed row is cut off, or has bytes after its end")
    else:
        raise ValueError("the row is packed in a way that this version does not know")
    if len(payloads) != length:
        raise ValueError("the packed row is not as long as its header says")
    return payloads


def loosened(packed: bytes, length: int) -> bytes:
    """The same, stored as it is: for whoever packs many rows together. Raises ValueError as `unpack` does."""
    return as_it_is(unpack(packed, length))


def as_it_is(payloads: bytes) -> bytes:
    """Payloads in the form of packed ones, and not packed."""
    return _sealed(PLAIN, payloads)


_INSIDE = 5
"""Where it begins: after the number and the checksum."""


def _sealed(number: int, inside: bytes) -> bytes:
    return bytes((number,)) + zlib.crc32(inside).to_bytes(4, "big") + inside

"""What a salt changes, and that what was made before there were salts keeps its address."""

from wakeful.decisions.channels import topic_of
from wakeful.decisions.salted_secrets import salted
from wakeful.decisions.waking.trigger_addresses import path_of, trigger_id_of

SECRET = b"s" * 32
CI = trigger_id_of("ops", "ci")


def test_addresses_and_topics_from_before_there_were_salts_are_what_they_were() -> None:
    path = path_of(salted(SECRET, None), CI, 2, "enqueue_message")
    assert path == "/callbacks/enqueue/wkt_1121fd00eb9e94122bbeaec3.IpbJOSnjuNweLC0-PCMDgLkO8C9aPu3V-FWONOiHbS0"
    assert topic_of(salted(SECRET, None), "phone", 1, "out") == "wknCxMOys2F33nryUZgjO9m6t8KDJs50"


def test_each_salt_gives_another_address() -> None:
    keys = [salted(SECRET, salt) for salt in (None, "", "salt_1", "salt_2")] + [salted(b"t" * 32, "salt_1")]
    assert len({path_of(key, CI, 2, "wake_hint") for key in keys}) == 5
    assert len({topic_of(key, "phone", 1, "out") for key in keys}) == 5

"""What an address is, the same in every version of Python."""

from ipaddress import ip_address

import pytest

from wakeful.decisions.network_addresses import is_loopback, kind_of

KINDS = {
    "loopback": [
        "127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1",
        "64:ff9b::127.0.0.1", "2002:7f00:1::", "2002:7f00:1:1:2:3:4:5", "2001:0:4136:e378:8000:63bf:80ff:fffe",
    ],
    "private": [
        "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "198.18.0.1", "192.0.2.1",
        "fc00::1", "fd12::1", "fec0::1", "feff:ffff::1", "64:ff9b:1::1", "2001:db8::1", "3fff::1", "100::1",
        "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    ],
    "link_local": [
        "169.254.169.254", "169.254.0.1", "fe80::1", "febf::1", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200",
        "192.0.0.192", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::",
    ],
    "nobody": [
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1", "::",
        "::ffff:0.0.0.0", "ff02::1", "::ffff:0:127.0.0.1", "1::1", "4000::1", "8000::1", "fe00::1", "2001:10::1",
    ],
    "global": [
        "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255", "2606:2800:220:1::1",
        "2001:4860:4860::8888", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::", "2a00::1",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_an_address_is_what_our_own_lists_say(kind: str, text: str) -> None:
    assert kind_of(ip_address(text)) == kind


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "127.9.9.9", "::1%lo"])
def test_this_machine_is_known_by_its_own_addresses(host: str) -> None:
    assert is_loopback(host) is True


@pytest.mark.parametrize(
    "host", ["localhost", "127.evil.example", "::ffff:127.0.0.1", "2002:7f00:1::", "10.0.0.1", "", "0.0.0.0"]
)
def test_nothing_else_is_this_machine(host: str) -> None:
    assert is_loopback(host) is False

"""What an IP address is, by lists of our own: this machine, this network, nobody's, or a place on the internet.

Python's own properties (`is_private`, `is_loopback`) say different things in different versions about the same address,
so that no boundary rests on them. An IPv6 address that stands for an IPv4 address (mapped, compatible, 6to4, Teredo,
NAT64) is what that one is. What is in no list and not in the part of IPv6 that is given out is nobody's.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Kind: TypeAlias = Literal["loopback", "private", "link_local", "nobody", "global"]
"""link_local: also where machines keep their metadata. nobody: multicast, reserved, unspecified, never given out."""

_METADATA = frozenset(ip_address(text) for text in ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
"""Where clouds keep metadata outside the link-local networks."""
_IPV4: tuple[tuple[Kind, tuple[IPv4Network, ...]], ...] = (
    ("loopback", (IPv4Network("127.0.0.0/8"),)),
    ("link_local", (IPv4Network("169.254.0.0/16"),)),
    (
        "private",
        (
            IPv4Network("10.0.0.0/8"),
            IPv4Network("100.64.0.0/10"),  # shared by the customers of a provider
            IPv4Network("172.16.0.0/12"),
            IPv4Network("192.0.0.0/24"),
            IPv4Network("192.0.2.0/24"),  # three networks for documents
            IPv4Network("192.168.0.0/16"),
            IPv4Network("198.18.0.0/15"),  # benchmarks
            IPv4Network("198.51.100.0/24"),
            IPv4Network("203.0.113.0/24"),
        ),
    ),
    ("nobody", (IPv4Network("0.0.0.0/8"), IPv4Network("192.88.99.0/24"), IPv4Network("224.0.0.0/3"))),
)
_IPV6: tuple[tuple[Kind, tuple[IPv6Network, ...]], ...] = (
    ("loopback", (IPv6Network("::1/128"),)),
    ("link_local", (IPv6Network("fe80::/10"),)),
    (
        "private",
        (
            IPv6Network("64:ff9b:1::/48"),  # translation inside a network
            IPv6Network("100::/64"),
            IPv6Network("2001:2::/48"),  # benchmarks
            IPv6Network("2001:db8::/32"),  # two networks for documents
            IPv6Network("3fff::/20"),
            IPv6Network("fc00::/7"),
            IPv6Network("fec0::/10"),  # site-local: given up, and still routed in places
        ),
    ),
    ("nobody", (IPv6Network("2001:10::/28"), IPv6Network("2001:20::/28"), IPv6Network("ff00::/8"))),
)
_GIVEN_OUT = IPv6Network("2000::/3")
_AT_THE_END = (IPv6Network("::ffff:0:0/96"), IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))
"""Networks whose addresses end with an IPv4 address."""
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def kind_of(address: Address) -> Kind:
    """What the address is, one that stands for another judged as that other."""
    meant = stands_for(address)
    if meant in _METADATA:
        return "link_local"
    if isinstance(meant, IPv4Address):
        return next((kind for kind, networks in _IPV4 if any(meant in network for network in networks)), "global")
    for kind, networks in _IPV6:
        if any(meant in network for network in networks):
            return kind
    return "global" if meant in _GIVEN_OUT else "nobody"


def stands_for(address: Address) -> Address:
    """The IPv4 address inside an IPv6 address; any other address as it is."""
    if isinstance(address, IPv4Address):
        return address
    bits = int(address)
    if bits > 1 and any(address in network for network in _AT_THE_END):
        return IPv4Address(bits & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(bits >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:
        return IPv4Address(~bits & 0xFFFFFFFF)
    return address


def is_loopback(host: str) -> bool:
    """Is this this machine's address as people write it? No name is, nor an address that only stands for one: it
    opens what is closed to others, so that the narrow reading is the safe one."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return stands_for(address) == address and kind_of(address) == "loopback"

"""Where requests to a server may go, and that they go to the address that was judged."""

from collections.abc import Sequence

import pytest

from wakeful.tools.mcp.addresses import AddressRefused, Destinations, Lookup


def names(**known: Sequence[str]) -> Lookup:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return known[host]

    return lookup


async def test_a_public_address_is_connected_to_as_it_was_found() -> None:
    found = Destinations(
        "https://docs.example/mcp", lookup=names(docs=["93.184.216.34", "10.0.0.1", "1.1.1.1", "1.1.1.1"])
    )
    assert await found.addresses_of("docs", 443) == ["93.184.216.34", "1.1.1.1"]
    assert await found.addresses_of("2606:2800:220:1::1", 443) == ["2606:2800:220:1::1"]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "0.0.0.0",
        "::", "169.254.169.254", "fe80::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1",
        "2002:7f00:1::", "224.0.0.1", "240.0.0.1", "255.255.255.255", "fec0::1", "::ffff:10.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "2002:a9fe:a9fe::", "2001:0:4136:e378:8000:63bf:80ff:fffe", "64:ff9b:1::1", "4000::1",
    ],
)  # fmt: skip
async def test_no_name_leads_inside(address: str) -> None:
    with pytest.raises(AddressRefused, match="no request goes there"):
        await Destinations("https://docs.example/mcp", lookup=names(docs=[address])).addresses_of("docs", 443)
    with pytest.raises(AddressRefused):
        await Destinations("https://docs.example/mcp").addresses_of(address, 443)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd00::1"])
async def test_private_addresses_are_for_servers_whose_owner_says_so(address: str) -> None:
    found = Destinations("https://intra.example/mcp", allow_private=True, lookup=names(intra=[address]))
    assert await found.addresses_of("intra", 443) == [address]


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "0.0.0.0"])
async def test_metadata_is_for_nobody(address: str) -> None:
    with pytest.raises(AddressRefused):
        await Destinations("http://x/mcp", allow_private=True, lookup=names(x=[address])).addresses_of("x", 80)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_a_url_that_names_this_machine_means_that_port_and_no_other(host: str) -> None:
    found = Destinations(f"http://{host}:8000/mcp", lookup=names(localhost=["127.0.0.1"], inside=["127.0.0.1"]))
    assert await found.addresses_of(host, 8000) in (["127.0.0.1"], ["::1"])
    for other, port in ((host, 8001), ("10.0.0.1", 8000), ("inside", 8000)):
        with pytest.raises(AddressRefused):
            await found.addresses_of(other, port)


async def test_a_name_without_an_address_is_no_refusal() -> None:
    with pytest.raises(OSError, match="no address"):
        await Destinations("https://x/", lookup=names(x=[])).addresses_of("x", 443)

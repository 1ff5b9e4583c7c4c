"""Which addresses the web tools connect to: a table of ranges and of the ways to write them."""

from __future__ import annotations

import pytest
from web_site import Names, refused

from lousho import create_http_tool, create_web_fetch_tool, http_tool, web_fetch_tool
from lousho.tools.web import is_public_address

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "203.0.114.0",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2001:200::1",
    "2003::1",
    "2606:2800:220:1:248:1893:25c8:1946",
    "2a00:1450:4001:81b::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]
"""Addresses of the internet, many of them right beside a range that is not."""

NOT_PUBLIC = {
    "loopback": ["127.0.0.1", "127.0.0.0", "127.1.2.3", "127.255.255.255", "::1"],
    "RFC 1918": ["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"],
    "link-local": ["169.254.0.1", "169.254.255.255", "fe80::1", "febf:ffff::1"],
    "metadata": ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"],
    "metadata over IPv6": ["fd00:ec2::254", "fd20:ce::254"],
    "carrier NAT": ["100.64.0.0", "100.127.255.255"],
    "unspecified": ["0.0.0.0", "0.1.2.3", "0.255.255.255", "::"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.254", "255.255.255.255", "4000::1", "100::1", "5f00::1", "3ffe::1"],
    "protocol assignments": ["192.0.0.1", "192.0.0.170", "192.88.99.1", "2001:10::1", "2001:20::1"],
    "benchmarks": ["198.18.0.0", "198.19.255.255", "2001:2::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff::1"],
    "ULA and site-local": ["fc00::1", "fd12:3456::1", "fec0::1"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "0:0:0:0:0:ffff:7f00:1"],
    "IPv4-compatible": ["::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.1.2.3", "64:ff9b:1::8.8.8.8", "64:ff9b:1::1"],
    "6to4": ["2002:7f00:1::1", "2002:a00:1::", "2002:808:808::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
}
RANGES = [pytest.param(one, id=f"{kind}: {one}") for kind, some in NOT_PUBLIC.items() for one in some]

WRITTEN = [
    "0177.0.0.1",
    "0177.0.0.01",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.1",
    "0x7F.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.0.0.0x1",
    "0",
    "0x",
    "00",
    "0.0",
    "10.1",
    "0xa000001",
    "192.168.257",
    "0xa9fea9fe",
    "2852039166",
    "169.254.43518",
    "0251.0376.0251.0376",
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "１２７.0.0.1",
    "①②⑦.0.0.1",
    "0Ⅹ7f.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0x7f000001]",
    "[fe80::1%25eth0]",
    "[fe80::1%eth0]",
    "[::1%25lo]",
    "[2606:4700::1%25lo]",
    "256.256.256.256",
    "4294967296",
    "0x100000000",
    "1.2.3.4.5",
    "08.8.8.8",
    "0x.0x",
    "127.0.0.1%00",
    "%31%32%37.0.0.1",
]
"""Ways to write an address that is none of the internet, and texts that are no host at all."""


@pytest.mark.spec("TOOL-61")
@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str):
    assert is_public_address(address)


@pytest.mark.spec("TOOL-61", "BEY-40")
@pytest.mark.parametrize("address", RANGES)
async def test_an_address_that_is_not_of_the_internet_is_refused_as_a_literal_and_as_an_answer(address: str):
    assert not is_public_address(address)
    literal = f"[{address}]" if ":" in address else address
    assert "only public hosts may be reached" in await refused(http_tool({"url": f"http://{literal}/"}))
    names = Names(site_test=[[address]])
    fetch = create_web_fetch_tool(resolver=names)
    told = await refused(fetch({"url": "https://site.test/"}))
    assert told == "'site.test' is not on the public internet, and only public hosts may be reached."
    assert names.lookups == ["site.test"]


@pytest.mark.spec("TOOL-60", "TOOL-61", "BEY-40")
@pytest.mark.parametrize("host", WRITTEN)
@pytest.mark.parametrize("tool", [http_tool, web_fetch_tool], ids=["http_request", "web_fetch"])
async def test_no_way_of_writing_a_host_gets_past_the_check(host: str, tool):
    assert not is_public_address(host)
    await refused(tool({"url": f"http://{host}/"}))
    await refused(tool({"url": f"https://{host}:8443/latest/meta-data"}))


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("0x8.0x8.8.8", "8.8.8.8"),
        ("134744072", "8.8.8.8"),
        ("010.8.2056", "8.8.8.8"),
        ("8.8.8.8.", "8.8.8.8"),
        ("８.8。8.8", "8.8.8.8"),
        ("[2606:4700::0:1]", "2606:4700::1"),
    ],
)
async def test_a_public_address_is_read_as_the_operating_system_reads_it(written: str, address: str):
    assert is_public_address(written)
    blocks = create_http_tool(blocked_hosts=[address])
    assert "is blocked" in await refused(blocks({"url": f"http://{written}/"}))


@pytest.mark.parametrize("text", ["", " ", "example.com", "localhost", "8.8.8.8/32", "8.8.8.8:80", "[8.8.8.8]", ":::"])
def test_what_is_no_address_is_not_a_public_one(text: str):
    assert not is_public_address(text)


@pytest.mark.spec("TOOL-61")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(["8.8.8.8", "127.0.0.1"], id="public, then loopback"),
        pytest.param(["10.0.0.1", "8.8.8.8"], id="private, then public"),
        pytest.param(["2606:4700::1", "fd00::1"], id="IPv6"),
        pytest.param(["8.8.8.8"] * 30 + ["192.168.1.1"], id="at the end of a long list"),
        pytest.param(["fe80::1%eth0"], id="link-local with a scope"),
        pytest.param(["2606:4700::1%eth0"], id="public but with a scope"),
        pytest.param(["127.1"], id="not in its usual form"),
        pytest.param(["nonsense"], id="no address"),
    ],
)
async def test_one_bad_address_among_those_of_a_name_refuses_the_name(answer: list[str]):
    fetch = create_web_fetch_tool(resolver=Names(site_test=[answer]))
    told = await refused(fetch({"url": "http://site.test/"}))
    assert told == "'site.test' is not on the public internet, and only public hosts may be reached."


@pytest.mark.spec("TOOL-61")
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "ⓛocalhost", "loca\u00adlhost"])
async def test_localhost_is_looked_up_and_refused(host: str):
    told = await refused(web_fetch_tool({"url": f"http://{host}:8080/"}))
    assert told == "'localhost' is not on the public internet, and only public hosts may be reached."

"""Which addresses the web tools may connect to: the public internet, and nothing that only looks like it.

The ranges are written out instead of asked of `ipaddress`, whose idea of "private" and "global" changed between Python
versions. Sources: the IANA special-purpose registries
(https://www.iana.org/assignments/iana-ipv4-special-registry, https://www.iana.org/assignments/iana-ipv6-special-registry)
and the metadata services of the large clouds. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

AddressKind: TypeAlias = Literal["public", "private", "sealed"]
"""`private` can be opened for a host by `allow_private`; `sealed` only by naming the very address there."""

_SEALED_V4: Final = (
    "0.0.0.0/8",  # this network; 0.0.0.0 reaches the own machine
    "169.254.0.0/16",  # link-local, and where clouds keep their metadata
    "100.100.100.200/32",  # metadata of Alibaba Cloud
    "168.63.129.16/32",  # the host of an Azure machine: looks public, is not
    "192.0.0.192/32",  # metadata of Oracle Cloud
    "224.0.0.0/4",  # multicast
    "255.255.255.255/32",  # broadcast
)
_PRIVATE_V4: Final = (
    "10.0.0.0/8",
    "100.64.0.0/10",  # carrier-grade NAT
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relays, withdrawn
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "240.0.0.0/4",  # reserved
)
_SEALED_V6: Final = (
    "::/128",  # unspecified
    "fe80::/10",  # link-local
    "ff00::/8",  # multicast
    "fd00:ec2::/32",  # metadata of AWS
    "fd20:ce::254/128",  # metadata of Google Cloud
)
_PUBLIC_V6: Final = "2000::/3"
"""All that is given out to the internet; what lies outside is loopback, ULA, site-local, reserved or an embedding."""
_PRIVATE_V6: Final = (
    "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, which hides an IPv4 address
    "3ffe::/16",  # 6bone, returned
    "3fff::/20",  # documentation
)
_NAT64: Final = "64:ff9b::/96"


def is_public_address(text: str) -> bool:
    """Return whether the web tools would connect to an address without being told to.

    `text` is an IPv4 or IPv6 address in any form that a URL can have it in: `93.184.216.34`, `0177.0.0.1`, `127.1`,
    `2130706433`, `[::1]`. Anything else, a host name for one, is not a public address. An address that carries an IPv4
    address for the network to unpack (IPv4-mapped, NAT64) counts as that one. Source: tools page.
    """
    from lousho.tools.web.hosts import BadHost, read_host

    try:
        host = read_host(f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text)
    except BadHost:
        return False
    return host.literal and kind_of_address(host.name) == "public"


def kind_of_address(text: str) -> AddressKind:
    """Return what an address in its usual form is. One that cannot be read, or that has a scope, is `sealed`."""
    from ipaddress import IPv4Address, ip_address

    try:
        address = ip_address(text)
    except ValueError:
        return "sealed"
    if isinstance(address, IPv4Address):
        return _kind_of_v4(address)
    return "sealed" if address.scope_id is not None else _kind_of_v6(address)


def _kind_of_v4(address: IPv4Address) -> AddressKind:
    if any(address in network for network in _v4(_SEALED_V4)):
        return "sealed"
    return "private" if any(address in network for network in _v4(_PRIVATE_V4)) else "public"


def _kind_of_v6(address: IPv6Address) -> AddressKind:
    from ipaddress import IPv4Address

    if address.ipv4_mapped is not None:
        return _kind_of_v4(address.ipv4_mapped)
    if address in _v6((_NAT64,))[0]:
        # Networks without IPv4 reach every IPv4 host this way, so it is as public as what it stands for.
        return _kind_of_v4(IPv4Address(int(address) & 0xFFFFFFFF))
    if any(address in network for network in _v6(_SEALED_V6)):
        return "sealed"
    if address not in _v6((_PUBLIC_V6,))[0] or any(address in network for network in _v6(_PRIVATE_V6)):
        return "private"
    return "public"


@cache
def _v4(networks: tuple[str, ...]) -> tuple[IPv4Network, ...]:
    from ipaddress import IPv4Network

    return tuple(IPv4Network(network) for network in networks)


@cache
def _v6(networks: tuple[str, ...]) -> tuple[IPv6Network, ...]:
    from ipaddress import IPv6Network

    return tuple(IPv6Network(network) for network in networks)

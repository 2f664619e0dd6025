"""Which addresses may be reached: public ones on the usual ports, and what was allowed by name.

A URL is read by one parser, that of the client which will fetch it, so that no address is checked
in one reading and reached in another. The check of an address itself belongs to the moment of
connecting: ``resolve`` gives the very addresses that are then connected to.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import httpx

from ..errors import BackendError, ConfigurationError, PageError

__all__ = ["AddressRules", "clean_url", "is_public", "resolve"]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# What the registries of special-purpose addresses take out (RFC 6890 and after), and one metadata
# service that a cloud runs at a public address.
_SPECIAL_V4 = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
        "192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 "
        "192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
        "168.63.129.16/32"
    ).split()
)
# All that holds another address (mapped, NAT64, 6to4, Teredo) lies outside the first block or is
# named in the others, and so is never public.
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    ipaddress.IPv6Network(block)
    for block in "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20".split()
)
_PORTS = frozenset((80, 443))
_SCHEMES = ("http", "https")
_MAX_URL_CHARS = 4_000
_IS_NUMBER = re.compile(r"(?:\d+|0[xX][0-9a-fA-F]*)")


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Where a fetcher may go.

    Attributes:
        networks: Networks that may be reached though they are not public, on any port.
        ports: Ports that may be reached on public addresses.
    """

    networks: tuple[_Network, ...] = ()
    ports: frozenset[int] = _PORTS

    @classmethod
    def of(cls, allow: Sequence[str]) -> Self:
        """Read what a user allows: addresses and networks, and ports as ``:8443``.

        Raises:
            ConfigurationError: An entry is neither.

        Example:
            >>> AddressRules.of(["127.0.0.0/8", ":8443"]).ports == {80, 443, 8443}
            True
        """
        if isinstance(allow, str):
            raise ConfigurationError(f"allow must be a list of texts, got the text {allow!r}")
        networks: list[_Network] = []
        ports = set(_PORTS)
        for entry in allow:
            try:
                if entry.startswith(":"):
                    ports.add(int(entry[1:]))
                else:
                    networks.append(ipaddress.ip_network(entry.strip("[]")))
            except ValueError:
                raise ConfigurationError(
                    f"allow: {entry!r} is no address, network or port; "
                    "pass for example '127.0.0.1', '10.0.0.0/8' or ':8443'"
                ) from None
        return cls(tuple(networks), frozenset(ports))

    def allows(self, address: _Address, port: int) -> bool:
        """Tell whether an address may be connected to."""
        if any(address in network for network in self.networks):
            return True
        return port in self.ports and is_public(address)


def is_public(address: _Address) -> bool:
    """Tell whether an address is one of the public internet, and holds no other address.

    Example:
        >>> is_public(ipaddress.ip_address("169.254.169.254"))
        False
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _SPECIAL_V4)
    if address.scope_id is not None or address not in _GLOBAL_V6:
        return False
    return not any(address in block for block in _SPECIAL_V6)


def clean_url(text: str) -> httpx.URL:
    """Return an address in its one spelling, without fragment.

    Raises:
        PageError: It is no address of a web page, holds a user's name or password, or spells its
            host as a number.
    """
    text = text.strip()
    if len(text) > _MAX_URL_CHARS:
        raise PageError("bad_url", f"The address is longer than {_MAX_URL_CHARS} characters.")
    try:
        url = httpx.URL(text).copy_with(fragment=None)
        host = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
        raise PageError("bad_url", f"{text[:200]!r} is no address of a web page.") from None
    if url.scheme not in _SCHEMES:
        raise PageError(
            "bad_url",
            f"Only addresses that begin with http:// or https:// open, not {text[:200]!r}.",
        )
    if url.userinfo:
        raise PageError("bad_url", "An address with a user's name or password is not opened.")
    if not host or "%" in host or _is_odd_number(host):
        raise PageError("bad_url", f"{text[:200]!r} names no host; write the host's plain name.")
    return url.copy_with(raw_path=url.raw_path)  # which is / where there is none


def _is_odd_number(host: str) -> bool:
    """Tell whether a host would be read as a number, but is no plain IPv4 or IPv6 address.

    A host whose last label is a number is an address to a resolver: 2130706433, 0x7f.1, 0177.0.0.1.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(_IS_NUMBER.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]))
    return False


async def resolve(host: str, port: int, rules: AddressRules) -> list[str]:
    """Return the addresses of a host, each of which may be connected to.

    One that may not be refuses them all: a name that is half private is no public name.

    Raises:
        PageError: There is no such host, or it may not be reached.
        BackendError: Names cannot be resolved at all at the moment.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise BackendError(
                f"names cannot be resolved ({error.strerror}): no network?"
            ) from None
        raise PageError("no_such_host", f"There is no host {host[:200]!r}.") from None
    except (OSError, UnicodeError):
        raise PageError("no_such_host", f"There is no host {host[:200]!r}.") from None
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    if not all(rules.allows(ipaddress.ip_address(address), port) for address in addresses):
        raise PageError("blocked_address", f"{host[:200]}:{port} is not on the public web.")
    return addresses

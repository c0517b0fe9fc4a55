"""One download from the web, within bounds: its bytes, or the reason for its refusal.

The module knows no pictures and no files.
"""

import ipaddress
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import Retry, Timeout

from study import __version__

ANSWER_SECONDS = 10.0
"""Seconds that a server may be silent."""
BLOCK_BYTES = 2**16
HEADERS = {
    "User-Agent": f"Mozilla/5.0 (compatible; study/{__version__})",
    "Accept": "image/jpeg,image/png,image/webp,image/*;q=0.8",
    "Accept-Encoding": "identity",  # packed content could unpack to any size
}
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
"""Status codes, with every 5xx, after which another attempt may succeed."""
NAT64, UNICAST = ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("2000::/3")
"""IPv6 addresses that end in one of IPv4, and those that the internet knows."""


@dataclass(frozen=True)
class Bounds:
    """Limits of one download. ``private_addresses`` also allows machines that the internet does not reach."""

    bytes: int = 20 * 2**20
    seconds: float = 20.0
    redirects: int = 5
    private_addresses: bool = False


class Refused(Exception):
    """Raised when there is no content, with the reason.

    ``unreachable`` is true if no sound answer came, so that another attempt may succeed.
    """

    def __init__(self, reason: str, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


def download(url: str, bounds: Bounds) -> bytes:
    """Return the content behind ``url``. Raise :class:`Refused`, and nothing else, if there is none."""
    if scheme_of(url) not in ("http", "https"):
        raise Refused("it is not an http or https address")
    watch = _Watch(bounds, proxied=_proxy(url) is not None)
    try:
        with _manager(url, watch, bounds) as manager:
            response = manager.request("GET", url, preload_content=False)
            try:
                content = _read(response, bounds)
            finally:
                response.close()
    except (exceptions.HTTPError, OSError, ValueError) as error:
        raise watch.refusal or _refusal(error, bounds) from None
    finally:
        watch.end()
    if watch.refusal:  # a connection that was cut looks like one that ended
        raise watch.refusal
    return content


def scheme_of(url: str) -> str:
    """Return the scheme of an address, e.g. ``http``; empty if it is not one."""
    try:
        parts = urlsplit(url)
        return parts.scheme.lower() if parts.hostname else ""
    except ValueError:
        return ""


def _read(response: urllib3.BaseHTTPResponse, bounds: Bounds) -> bytes:
    if response.status != HTTPStatus.OK:
        known = response.status in set(HTTPStatus)
        words = f"{response.status} {HTTPStatus(response.status).phrase}" if known else str(response.status)
        raise Refused(f"the server answers {words}", response.status >= 500 or response.status in BUSY)
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind and not kind.startswith("image/") and not kind.endswith("/octet-stream"):
        raise Refused(f"its content type is {kind[:60]!r}, which is not that of an image")
    too_large = Refused(f"it has more than {bounds.bytes} bytes")
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced) > bounds.bytes:
        raise too_large
    content = bytearray()
    while block := response.read1(BLOCK_BYTES, decode_content=False):  # does not wait for a whole block: sees a drip
        content += block
        if len(content) > bounds.bytes:
            raise too_large
    return bytes(content)


class _Watch:
    """Sees every connection of one download before anything is sent, and cuts them when the time is over."""

    def __init__(self, bounds: Bounds, proxied: bool) -> None:
        self.refusal: Refused | None = None
        self.bounds, self.proxied = bounds, proxied
        self.sockets: list[socket.socket] = []
        self.timer = threading.Timer(bounds.seconds, self._stop)
        self.timer.daemon = True
        self.timer.start()

    def opened(self, connection: socket.socket) -> socket.socket:
        """Return the connection if it may be used; otherwise close it and raise :class:`Refused`.

        Behind a proxy the address is that of the proxy, which decides itself.
        """
        if not (self.proxied or self.bounds.private_addresses or _is_public(connection.getpeername()[0])):
            self.refusal = Refused("its address is private: the internet does not reach it")
        if self.refusal:
            connection.close()
            raise self.refusal
        self.sockets.append(connection.dup())  # wrapped for TLS, the connection itself is no longer at hand
        return connection

    def _stop(self) -> None:
        self.refusal = self.refusal or Refused(f"it took longer than {self.bounds.seconds:g} s", unreachable=True)
        for connection in self.sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Stop the timer and close our copies of the connections."""
        self.timer.cancel()
        for connection in self.sockets:
            connection.close()


def _is_public(address: str) -> bool:
    """Return whether a machine at this IP address is one of the internet.

    An IPv6 address that stands for one of IPv4 is as public as that. Of the others only 2000::/3 is given to machines.
    Python alone calls some that lead back into the own network global.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        translated = ipaddress.IPv4Address(int(parsed) % 2**32) if parsed in NAT64 else None
        if inner := parsed.ipv4_mapped or parsed.sixtofour or translated:
            return _is_public(str(inner))
        return parsed in UNICAST and parsed.is_global
    return parsed.is_global and not parsed.is_multicast


def _manager(url: str, watch: _Watch, bounds: Bounds) -> urllib3.PoolManager:
    """Return urllib3 with our watch on each connection, including those after a redirect."""

    class Http(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return watch.opened(super()._new_conn())

    class Https(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return watch.opened(super()._new_conn())

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Http

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Https

    retries = Retry(total=None, connect=0, read=0, status=0, other=0, redirect=bounds.redirects)
    timeout = Timeout(connect=min(ANSWER_SECONDS, bounds.seconds), read=min(ANSWER_SECONDS, bounds.seconds))
    proxy = _proxy(url)
    manager = (
        urllib3.ProxyManager(proxy, headers=HEADERS, retries=retries, timeout=timeout)
        if proxy
        else urllib3.PoolManager(headers=HEADERS, retries=retries, timeout=timeout)
    )
    manager.pool_classes_by_scheme = {"http": HttpPool, "https": HttpsPool}
    return manager


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for this address, or None."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme.lower())
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _refusal(error: Exception, bounds: Bounds) -> Refused:
    """Return the meaning of an exception of urllib3, in words that name none of its objects."""
    if isinstance(error, exceptions.MaxRetryError) and error.reason:
        error = error.reason
    if isinstance(error, exceptions.ResponseError):
        return Refused(f"it redirects more than {bounds.redirects} times")
    if isinstance(error, exceptions.SSLError):
        return Refused("its certificate is not valid")
    if isinstance(error, exceptions.NameResolutionError):
        return Refused("the name of its server is not known", unreachable=True)
    if isinstance(error, (exceptions.URLSchemeUnknown, exceptions.LocationValueError, ValueError)):
        return Refused("it is not an http or https address")
    if isinstance(error, (exceptions.TimeoutError, exceptions.NewConnectionError)):
        return Refused("its server does not answer", unreachable=True)
    return Refused("the connection broke off", unreachable=True)

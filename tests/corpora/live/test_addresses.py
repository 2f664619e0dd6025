"""No address is reached but public ones and those allowed, however it is spelled or named."""

import ipaddress

import pytest
from webserver import web_server

from seekgym.corpora import ConfigurationError
from seekgym.corpora.errors import PageError
from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.addresses import AddressRules, clean_url, is_public

SEARCH = "searxng:http://127.0.0.1:9"
QUICK = Limits(total_s=3, first_wait_s=0.01, delay_s=0)

REFUSED_HOSTS = [
    "127.0.0.1",
    "localhost",
    "127.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:8.8.8.8]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::808:808]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
]
ODD_SPELLINGS = [
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "127.0.0.1.",
    "1.2.3.4.5",
    "0",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    "\u2460\u2461\u2466.0.0.1",
]


@pytest.fixture(scope="module")
def site():
    site = LiveSite(SEARCH, limits=QUICK)
    yield site
    site.close()


@pytest.mark.parametrize("host", REFUSED_HOSTS)
def test_hosts_that_are_not_public_are_refused(site, host):
    with pytest.raises(PageError) as error:
        site.open(f"http://{host}/")
    assert error.value.code == "blocked_address"


@pytest.mark.parametrize("host", ODD_SPELLINGS)
def test_odd_spellings_of_addresses_are_refused(site, host):
    with pytest.raises(PageError) as error:
        site.open(f"http://{host}/")
    assert error.value.code in ("bad_url", "blocked_address")


@pytest.mark.parametrize("port", [22, 25, 6379, 8080, 65535])
def test_ports_are_refused_unless_they_are_allowed(port):
    public = ipaddress.ip_address("8.8.8.8")
    assert not AddressRules.of([]).allows(public, port)
    assert AddressRules.of([f":{port}"]).allows(public, port)
    assert not AddressRules.of([f":{port}"]).allows(ipaddress.ip_address("10.0.0.1"), port)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "data:text/html,<p>x",
        "javascript:alert(1)",
        "gopher://example.org/",
        "about:blank",
        "example.org",
        "//example.org/",
        "http://",
        "http:///x",
        "",
        " ",
        "http://user:word@example.org/",
        "http://user@example.org/",
        "http://example.org\\@127.0.0.1/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://exa mple.org/",
        "http://example.org:99999/",
        "http://example.org:x/",
        "http://example.org/\r\nX: y",
        "http://a\u0000b/",
        "\ud83c",
        "http://" + "a" * 5_000,
    ],
)
def test_what_is_no_address_of_a_page_is_refused_in_one_sentence(site, url):
    with pytest.raises(PageError) as error:
        site.open(url)
    assert error.value.code in ("bad_url", "no_such_host")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/a#b", "http://example.org/a"),
        ("https://example.org/a b?q=ä", "https://example.org/a%20b?q=%C3%A4"),
        (" http://example.org/x ", "http://example.org/x"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ],
)
def test_each_address_has_one_spelling(url, clean):
    assert str(clean_url(url)) == clean
    assert str(clean_url(clean)) == clean


def test_public_addresses_are_public():
    for address in ("8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"):
        assert is_public(ipaddress.ip_address(address)), address


def test_special_blocks_of_the_standard_library_are_not_public():
    private = [
        *ipaddress._IPv4Constants._private_networks,
        *ipaddress._IPv6Constants._private_networks,
    ]
    for network in private:
        assert not is_public(network[0]), network
        assert not is_public(network[-1]), network


@pytest.mark.parametrize("allow", ["127.0.0.1", [""], ["localhost"], ["10.0.0.1/8"], [":x"]])
def test_what_is_allowed_is_checked(allow):
    with pytest.raises(ConfigurationError, match="allow"):
        LiveSite(SEARCH, allow=allow)


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/", "http://169.254.169.254/latest"])
def test_redirects_to_other_addresses_are_refused(target):
    with web_server(host="127.0.0.2") as web:
        to = target.format(port=web.port)
        web.pages["/"] = lambda exchange: exchange.redirect(to)
        site = LiveSite(SEARCH, allow=["127.0.0.2"], limits=QUICK)
        with pytest.raises(PageError) as error:
            site.open(web.url)
        site.close()
    assert error.value.code == "blocked_address"


def test_the_address_connected_to_is_the_one_that_was_checked(monkeypatch):
    """A name server that answers anew each time: what is private is never connected to."""
    with web_server({"/": "<p>safe"}, host="127.0.0.2") as web:
        found = iter(["127.0.0.2", "127.0.0.1", "127.0.0.1"])
        asked = []

        def changing(host, port, *args, **options):
            asked.append(host)
            return [(2, 1, 6, "", (next(found), port))]

        monkeypatch.setattr("socket.getaddrinfo", changing)
        site = LiveSite(SEARCH, allow=["127.0.0.2"], limits=QUICK)
        page = site.open(f"http://rebinding.example:{web.port}/")
        site.close()
    assert page.paragraphs == ("safe",)
    # once for robots.txt and the page: the connection is kept, no name is looked up again
    assert asked.count("rebinding.example") == 1
    assert web.asked[0].headers["host"] == f"rebinding.example:{web.port}"


def test_a_name_that_is_half_private_is_refused(monkeypatch):
    both = [(2, 1, 6, "", (address, 80)) for address in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **options: both)
    site = LiveSite(SEARCH, limits=QUICK)
    with pytest.raises(PageError) as error:
        site.open("http://half.example/")
    site.close()
    assert error.value.code == "blocked_address"

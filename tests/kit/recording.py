"""What other processes do with cassettes and live sites."""

from seekgym.corpora.live import Cassette
from seekgym.corpora.live.answers import Answer


def write_many(folder, name, count):
    cassette = Cassette(folder)
    for number in range(count):
        url = f"http://{name}.example/{number}"
        cassette.write({"fetch": url}, Answer(url, "text/plain", f"{name} {number} ".encode() * 99))
        cassette.write({"fetch": "shared"}, Answer(url, "text/plain", b"shared"))


def open_there(site, url, found):
    found.put(site.open(url).paragraphs)

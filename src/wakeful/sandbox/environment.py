"""The environment of a command: what it needs to work, and no secret of ours.

An allow-list: a variable that nobody thought of is left out. What an owner names is added, except keys of providers and
our own settings: those are in no command's environment, whoever asks.
"""

from collections.abc import Collection, Mapping

USUAL = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "USER", "LOGNAME", "SHELL", "SOURCE_DATE_EPOCH"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
)
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def scrubbed(
    environ: Mapping[str, str],
    *,
    home: str,
    temporary: str,
    named: Collection[str] = (),
    keys: Collection[str] = (),
) -> dict[str, str]:
    """The variables a command gets. `home` and `temporary` are its own folders; `keys` are never passed on."""
    wanted = USUAL.union(named).difference(keys)
    kept = {
        name: value
        for name, value in environ.items()
        if (name in wanted or (name.startswith("LC_") and name not in keys)) and not name.startswith("WAKEFUL_")
    }
    kept.setdefault("PATH", DEFAULT_PATH)
    kept.setdefault("LANG", "C.UTF-8")
    return kept | {"HOME": home, "TMPDIR": temporary, "GIT_TERMINAL_PROMPT": "0"}

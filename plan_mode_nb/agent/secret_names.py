"""Which environment variables hold secrets, told by their names: what a confined program is not given, and what no text may show.

One rule for both, so that nothing is scrubbed from a program's environment that its output may then print, or the other way round.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

MIN_LENGTH: Final = 8
"""Characters. A shorter value would stand in words that are no secret (log.md, Size and secrets)."""
_SECRET: Final = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?:^|_)(?:KEY|PASS|PWD|PAT|AUTH|SALT|DSN|COOKIE)S?$",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(
    r"^(?:PWD|OLDPWD|GPG_KEY|GOOGLE_APPLICATION_CREDENTIALS|TOKENIZERS?_.*)$"
    r"|_(?:FILE|PATH|DIR|HOME|SOCK|SOCKET|URL|URI|HOST|PORT|NAME|TYPE|TTL|LENGTH|LIMIT|COUNT|EXPIRY|ENABLED|TIMEOUT)$",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret rather than, say, the place of one."""
    return _SECRET.search(name) is not None and _PLAIN.search(name) is None


def secret_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Value -> name of every secret long enough to be told from a word; of equal values the first name in order of names."""
    found: dict[str, str] = {}
    for name in sorted(filter(looks_secret, list(environ))):
        value = environ.get(name)  # another thread may have taken it out
        if value is not None and len(value.strip()) >= MIN_LENGTH:
            found.setdefault(value.strip(), name)
    return found

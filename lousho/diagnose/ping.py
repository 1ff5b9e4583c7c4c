"""`--ping`: ask each provider that has a key whether it answers and accepts it.

The question goes through the providers' own HTTP module, so a proxy or a certificate that breaks an agent's calls breaks
this one too, with the same words. Each key goes to its own provider only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lousho.diagnose.keys import KeyedProvider, is_set, keyed_providers
from lousho.diagnose.machine import without_credentials
from lousho.diagnose.report import Check

PING_SECONDS = 5
"""How long a provider has to answer."""


def ping_providers(env: Mapping[str, str], needed: str | None = None) -> list[Check]:
    """Ask every provider whose key is set, all at once. Source: installation page, "Troubleshooting".

    Silence is a warning, and a failure for the provider `needed`, which the examined agent runs on.
    """
    asked = [provider for provider in keyed_providers() if is_set(env, provider.key_variable)]
    if not asked:
        return [Check("ping", "Ping", "ok", "no key is set, so nobody was asked")]
    return asyncio.run(_ask_all(asked, env, needed))


async def _ask_all(asked: list[KeyedProvider], env: Mapping[str, str], needed: str | None) -> list[Check]:
    return list(await asyncio.gather(*(_ask(provider, env, needed=provider.name == needed) for provider in asked)))


async def _ask(keyed: KeyedProvider, env: Mapping[str, str], *, needed: bool) -> Check:
    from lousho.core.errors import CompactedLLMProviderError, SDKError
    from lousho.models.resolve import resolve_provider

    id_, name = f"ping.{keyed.name}", f"Ping {keyed.name}"
    base_url = env.get(keyed.base_url_variable)
    where = f" at {without_credentials(base_url)}" if base_url else ""
    try:
        await asyncio.wait_for(resolve_provider(f"{keyed.name}/ping").get_models(), PING_SECONDS)
    except CompactedLLMProviderError as error:
        if error.status_code in (401, 403):
            fix = f"Check {keyed.key_variable}: the provider does not accept it."
            return Check(id_, name, "fail", f"the key was rejected (HTTP {error.status_code})", fix)
        if error.status_code is not None:
            return Check(id_, name, "warn", f"answered with HTTP {error.status_code}{where}", error.hint)
        return _unreachable(keyed, error.detail, needed=needed)
    except SDKError as error:
        return Check(id_, name, "fail", error.detail, error.hint)
    except TimeoutError:
        return _unreachable(keyed, f"no answer within {PING_SECONDS} s{where}", needed=needed)
    if base_url:
        return Check(id_, name, "ok", f"reachable{where} (reachability only: a local server may not check keys)")
    return Check(id_, name, "ok", "answered and accepted the key")


def _unreachable(keyed: KeyedProvider, why: str, *, needed: bool) -> Check:
    fix = (
        "Check the network. Behind a proxy set HTTPS_PROXY, behind a company certificate SSL_CERT_FILE; "
        f"for a server of your own set {keyed.base_url_variable}."
    )
    if needed:
        why = f"{why}; the agent needs it"
    return Check(f"ping.{keyed.name}", f"Ping {keyed.name}", "fail" if needed else "warn", why, fix)

"""Checks of the providers' keys: whether each is set and where it came from, never what it is."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from lousho.diagnose.machine import set_variable, without_credentials
from lousho.diagnose.report import Check


class KeyedProvider(NamedTuple):
    """A provider that needs a key."""

    name: str
    key_variable: str

    @property
    def base_url_variable(self) -> str:
        """The variable that points the provider at another server."""
        return self.key_variable.replace("_API_KEY", "_BASE_URL")


def keyed_providers() -> list[KeyedProvider]:
    """Return the providers of this version that need a key."""
    from lousho.models.resolve import KEY_VARIABLES

    return [KeyedProvider(name, variable) for name, variable in KEY_VARIABLES.items()]


def is_set(env: Mapping[str, str], name: str) -> bool:
    """Whether the variable holds something; blanks count as nothing, as they do for the providers."""
    return bool(env.get(name, "").strip())


def check_keys(env: Mapping[str, str], from_file: Set[str]) -> list[Check]:
    """Check each provider's key variable; `from_file` names the variables that `.env` set."""
    return [_check_key(provider, env, from_file) for provider in keyed_providers()]


def key_fix(provider: KeyedProvider) -> str:
    """Return how to set the provider's key."""
    return set_variable(provider.key_variable, "<your key>")


def source_of(name: str, from_file: Set[str]) -> str:
    """Return where a set variable came from, in words."""
    return "from .env" if name in from_file else "from the environment"


def check_default_model(env: Mapping[str, str], from_file: Set[str]) -> Check:
    """Show which model an agent gets that names none, and whether it can be built."""
    from lousho.models.resolve import default_model_from_environment

    id_, name = "default-model", "Default model for create_agent()"
    model = default_model_from_environment(env)
    if model is None:
        found = "none: create_agent() needs a model, a provider or a variable, and lousho chat uses mock/demo"
        fix = "Set LOUSHO_MODEL (e.g. openai/gpt-4.1-mini) or one of the key variables above."
        return Check(id_, name, "warn", found, fix)
    problem = _problem_with(model, env)
    if problem is not None:
        return Check(id_, name, "fail", *problem)
    decided_by = ["LOUSHO_MODEL", *(provider.key_variable for provider in keyed_providers())]
    variable = next((variable for variable in decided_by if is_set(env, variable)), None)
    why = f" (by {variable} {source_of(variable, from_file)})" if variable is not None else ""
    return Check(id_, name, "ok", f"{model}{why}")


def _problem_with(model: str, env: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return what is wrong with a model string here, its fix and its code, without building the provider."""
    from lousho.core.errors import SDKError
    from lousho.models.registry import LLMProviderRegistry
    from lousho.models.resolve import split_model, unknown_provider_error

    try:
        prefix, model_id = split_model(model)
        if not LLMProviderRegistry.has(prefix):
            raise unknown_provider_error(prefix, model_id)
    except SDKError as error:
        return error.detail, error.hint, error.code
    needed = next((provider for provider in keyed_providers() if provider.name == prefix), None)
    if needed is None or is_set(env, needed.key_variable):
        return None
    return f"{model} needs {needed.key_variable}, which is not set", key_fix(needed), "LOUSHO_PROVIDER_MISSING_API_KEY"


def _check_key(provider: KeyedProvider, env: Mapping[str, str], from_file: Set[str]) -> Check:
    id_, name = f"key.{provider.name}", f"{provider.name} ({provider.key_variable})"
    base_url = env.get(provider.base_url_variable)
    where = f"; {provider.base_url_variable} {without_credentials(base_url)}" if base_url else ""
    if is_set(env, provider.key_variable):
        return Check(id_, name, "ok", f"set, {source_of(provider.key_variable, from_file)}{where}")
    return Check(id_, name, "warn", f"not set{where}", key_fix(provider))

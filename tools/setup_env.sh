#!/bin/sh
# Makes `.venv` and installs what a target needs. The Makefile calls it; a second run is skipped by the Makefile's stamps.
# usage: setup_env.sh run|dev|docs     VENV=.venv, PYTHON=an interpreter of your choice (3.11 or newer)
set -eu

want=${1:?usage: setup_env.sh run|dev|docs}
venv=${VENV:-.venv}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
version_of() { "$1" -c 'import platform; print(platform.python_version())' 2>/dev/null || echo "not runnable"; }

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" >/dev/null 2>&1 || fail "PYTHON=$PYTHON: there is no such program."
    new_enough "$PYTHON" || fail "Lousho needs Python 3.11 or newer, and PYTHON=$PYTHON is $(version_of "$PYTHON")."
    echo "$PYTHON"
    return
  fi
  for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then
      echo "$name"
      return
    fi
  done
  if command -v python3 >/dev/null 2>&1; then
    fail "Lousho needs Python 3.11 or newer, and python3 here is $(version_of python3). Install a newer one, or name it: make ... PYTHON=/path/to/python3.12"
  fi
  fail "Lousho needs Python 3.11 or newer, and there is no python3 on the PATH."
}

make_venv() {
  if [ -e "$venv" ] && [ ! -x "$venv/bin/python" ]; then
    fail "$venv is there but has no Python in it: remove it and run this again."
  fi
  if [ -x "$venv/bin/python" ]; then
    new_enough "$venv/bin/python" || fail "$venv holds Python $(version_of "$venv/bin/python"), and Lousho needs 3.11 or newer: remove $venv and run this again."
    return
  fi
  if command -v uv >/dev/null 2>&1; then
    say "making $venv with uv"
    uv venv --quiet --python "${PYTHON:->=3.11}" "$venv" || fail "uv could not make $venv: see the line above."
    return
  fi
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    fail "Python's venv module is incomplete here: install the package python3-venv (apt-get install python3-venv) and run this again."
  fi
  say "making $venv with $python ($(version_of "$python"))"
  "$python" -m venv "$venv" >"$log" 2>&1 || {
    rm -rf "$venv"
    cat "$log" >&2
    fail "$python could not make $venv: see the lines above."
  }
}

install() {
  if command -v uv >/dev/null 2>&1; then
    uv pip install --quiet --python "$venv/bin/python" "$@"
  else
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input --root-user-action=ignore "$@"
  fi || fail "The packages could not be installed: see the lines above, check the connection, and run this again."
}

make_venv
case $want in
run)
  say "installing what Lousho needs to run"
  install -e .
  ;;
dev | docs)
  say "installing the $want tools"
  "$venv/bin/python" tools/dependency_group.py "$want" >"$log"
  install -r "$log"
  ;;
*) fail "setup_env.sh: run, dev or docs, not $want" ;;
esac

#!/bin/sh
# Installs the outside programs that tests talk to into .peers, pinned. A second run is instant.
# Node.js comes with the development packages (basedpyright needs it too), so none has to be on the machine.
# What cannot be installed is named, and its tests skip with that reason; with CI set it is a failure.
set -u

AIMOCK=@copilotkit/aimock@1.43.0
LLMOCK=llmock==0.2.2
NOTEBOOK="ipykernel==7.4.0 uvloop==0.23.0"

here=$(cd "$(dirname "$0")/../.." && pwd)
venv=${VENV:-.venv}
case $venv in /*) ;; *) venv=$here/$venv ;; esac
peers=$here/.peers
log=$peers/install.log
failed=0

mkdir -p "$peers"
complain() {
  echo "peers: $1 could not be installed, so its tests cannot run; the reason is in .peers/install.log" >&2
  failed=1
}

if [ "$(cat "$peers/aimock.done" 2>/dev/null)" != "$AIMOCK" ]; then
  echo "installing $AIMOCK into .peers"
  if "$venv/bin/python" "$here/tests/peers/node.py" npm install --prefix "$peers/node" --no-audit --no-fund --loglevel=error "$AIMOCK" >"$log" 2>&1; then
    echo "$AIMOCK" >"$peers/aimock.done"
  else
    complain "$AIMOCK"
  fi
fi

# python_packages FOLDER REQUIREMENT...: into .peers/FOLDER, which is no part of the environment.
python_packages() {
  folder=$1
  shift
  wanted="$*"
  [ "$(cat "$peers/$folder.done" 2>/dev/null)" != "$wanted" ] || return 0
  echo "installing $wanted into .peers"
  rm -rf "${peers:?}/$folder"
  if command -v uv >/dev/null 2>&1; then
    set -- uv pip install --quiet --python "$venv/bin/python" --target "$peers/$folder" "$@"
  else
    set -- "$venv/bin/python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore --target "$peers/$folder" "$@"
  fi
  if "$@" >>"$log" 2>&1; then
    echo "$wanted" >"$peers/$folder.done"
  else
    complain "$wanted"
  fi
}

python_packages llmock "$LLMOCK"
# shellcheck disable=SC2086 # one word each
python_packages notebook $NOTEBOOK

[ -z "${CI:-}" ] || exit $failed

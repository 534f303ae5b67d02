#!/bin/sh
# Install the model server of another project that the tests in this folder talk to. Needs node 20 and npm.
set -eu
cd "$(dirname "$0")/../.."
aimock="@copilotkit/aimock@1.43.0"

if ! command -v npm >/dev/null 2>&1; then
    echo "npm is not there, so tests that talk to aimock cannot run; install node 20 or newer" >&2
    exit 1
fi
mkdir -p .peers
npm install --prefix .peers --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel error "$aimock"

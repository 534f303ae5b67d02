#!/bin/sh
# Install the servers of other projects that the tests in this folder talk to. Needs node 20 and npm.
set -eu
cd "$(dirname "$0")/../.."
aimock="@copilotkit/aimock@1.43.0"
everything="@modelcontextprotocol/server-everything@2026.8.31"
conformance="@modelcontextprotocol/conformance@0.1.16"
telegram="telegram-test-api@4.2.1"

if ! command -v npm >/dev/null 2>&1; then
    echo "npm is not there, so tests that talk to servers of others cannot run; install node 20 or newer" >&2
    exit 1
fi
mkdir -p .peers
install() {
    npm install --prefix .peers --no-save --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel error "$@"
}
# The conformance suite wants node 22: where node is older, one is installed beside it.
if [ "$(node -p 'process.versions.node.split(".")[0] >= 22')" = true ]; then
    install "$aimock" "$everything" "$conformance" "$telegram"
else
    install "$aimock" "$everything" "$conformance" "$telegram" "node-$(node -p process.platform)-$(node -p process.arch)@22.23.3"
fi

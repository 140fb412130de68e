#!/usr/bin/env bash
# Logs in to the registry that is pushed to, as docker login does: where a user is
# given, or to GitHub's own registry with the job's token. Else the credentials
# count that an earlier step has left.
set -euo pipefail
# shellcheck source=action/common.sh
. "$(dirname "$0")/common.sh"

case $INPUT_REFERENCE in
oci://*) host=${INPUT_REFERENCE#oci://} ;;
oci:* | oci-archive:* | ./* | /* | *.oci.tar*) exit 0 ;; # of this machine
*/*) host=$INPUT_REFERENCE ;;
*) exit 0 ;;
esac
host=${host%%/*}
user=$INPUT_USERNAME password=$INPUT_PASSWORD
if [ -z "$user$password" ] && [ "$host" = ghcr.io ]; then
	user=$GITHUB_ACTOR password=$INPUT_TOKEN
fi
[ -n "$user$password" ] || exit 0
[ -n "$user" ] || fail "a password is given, and no username"
[ -n "$password" ] || fail "a username is given, and no password"
printf '%s\n' "$password" | carton-oci login --username "$user" --password-stdin -- "$host"

#!/bin/sh
# Releases a carton, once:
#
#     release.sh SOURCE REPOSITORY VERSION COMMIT [RESULT.json]
#
# SOURCE is pushed to REPOSITORY under two tags, VERSION and sha-COMMIT, and every
# byte of what the registry then has is checked against the model hash. The
# digest goes to standard output and nothing else does; what was pushed is
# described in RESULT.json (release.json unless given), for a later step to keep.
#
# It is safe to run again: a tag that points to the same artifact stays, and one
# that points to another is never moved.
set -eu

if [ $# -lt 4 ]; then
	echo 'usage: release.sh SOURCE REPOSITORY VERSION COMMIT [RESULT.json]' >&2
	exit 2
fi
source=$1 repository=$2 version=$3 commit=$4 result=${5:-release.json}

trap 'rm -f "$result.partial"' EXIT
carton-oci push --no-clobber --format json "$source" "$repository:$version,sha-$commit" >"$result.partial"
mv "$result.partial" "$result"

# The digest of the artifact itself is at the object's first level; layers have
# theirs further inside.
digest=$(sed -n 's/^  "digest": "\(sha256:[0-9a-f]*\)",*$/\1/p' "$result")
if [ -z "$digest" ]; then
	echo "release.sh: $result names no digest" >&2
	exit 1
fi

carton-oci verify "$repository@$digest" >&2
echo "$digest"

#!/bin/sh
# The main job once, from a trained model to a registry and back:
#
#     examples/quickstart/run.sh [REFERENCE]
#
# REFERENCE is where the model is pushed to: an image layout in a temporary
# folder unless given, or a registry's repository and tag. Set CARTON_OCI to use
# a carton-oci that is built already.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
reference=${1:-oci:layout:1}

mkdir "$work/bin"
if [ -n "${CARTON_OCI:-}" ]; then
	cp "$CARTON_OCI" "$work/bin/carton-oci"
else
	(cd "$root" && go build -o "$work/bin/carton-oci" ./cmd/carton-oci)
fi
(cd "$root" && go build -o "$work/bin/quickstart" ./examples/quickstart)
PATH=$work/bin:$PATH
cd "$work"

say() { printf '\n# %s\n' "$1"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}

say 'Train a small network on iris flowers, and write it as an unpacked carton.'
run quickstart iris

say 'Make one file of it.'
run carton-oci pull ./iris -o iris.carton

say 'Push it.'
run carton-oci push iris.carton "$reference"

say 'Pull it back.'
run carton-oci pull "$reference" -o back.carton

say 'Check every byte, and look at it: the file, and what was pushed.'
run carton-oci verify back.carton
run carton-oci ls back.carton
run carton-oci inspect "$reference"

say 'A second pull gives the same file, bit for bit.'
run carton-oci pull "$reference" -o again.carton
run cmp back.carton again.carton
run cmp iris.carton again.carton

say 'And a push of what is there already sends nothing.'
run carton-oci push again.carton "$reference"

cat <<'END'

# With a registry of your own it is the same:
#   carton-oci login ghcr.io
#   carton-oci push model.carton ghcr.io/ORG/MODEL:1
#   carton-oci pull ghcr.io/ORG/MODEL:1 -o model.carton
END

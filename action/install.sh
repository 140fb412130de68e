#!/usr/bin/env bash
# Installs a released carton-oci for the rest of the job. What was downloaded is
# unpacked when its checksum is right, and not before.
set -euo pipefail
# shellcheck source=action/common.sh
. "$(dirname "$0")/common.sh"

version=${INPUT_VERSION#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "version: got $INPUT_VERSION, want one such as v0.1.0"
case $RUNNER_OS in
Linux) os=linux ;;
macOS) os=darwin ;;
Windows) os=windows ;;
*) fail "there is no release for $RUNNER_OS" ;;
esac
case $RUNNER_ARCH in
X64) arch=amd64 ;;
ARM64) arch=arm64 ;;
*) fail "there is no release for $RUNNER_ARCH" ;;
esac
archive=carton-oci_${version}_${os}_$arch.tar.gz
[ "$os" != windows ] || archive=${archive%.tar.gz}.zip

dir=$RUNNER_TEMP/carton-oci-$version
rm -rf "$dir"
mkdir -p "$dir/download" "$dir/bin"

download() {
	curl --fail --silent --show-error --location --proto '=https' --retry 3 --max-time 600 \
		--output "$dir/download/$1" "$INPUT_DOWNLOAD_URL/v$version/$1" ||
		fail "$1 of release v$version can't be downloaded from $INPUT_DOWNLOAD_URL"
}

download "$archive"
want=$INPUT_CHECKSUM
if [ -z "$want" ]; then
	download checksums.txt
	want=$(awk -v name="$archive" '$2 == name { print $1 }' "$dir/download/checksums.txt")
fi
[[ $want =~ ^[0-9a-f]{64}$ ]] || fail "got no sha256 of $archive, but '$want'"
if command -v sha256sum >/dev/null; then
	got=$(sha256sum <"$dir/download/$archive")
else
	got=$(shasum -a 256 <"$dir/download/$archive")
fi
got=${got%% *}
[ "$got" = "$want" ] || fail "$archive has the sha256 $got, want $want: it is not installed"

case $archive in
*.zip) unzip -q "$dir/download/$archive" -d "$dir/bin" ;;
*) tar -xzf "$dir/download/$archive" -C "$dir/bin" ;;
esac
rm -rf "$dir/download"
"$dir/bin/carton-oci" version
echo "$dir/bin" >>"$GITHUB_PATH"

#!/usr/bin/env bash
# Pushes a model to a registry, or packs it, and says what came of it: in the step's
# outputs, and on the page of the run.
set -euo pipefail
# shellcheck source=action/common.sh
. "$(dirname "$0")/common.sh"

[ -n "$INPUT_SOURCE" ] || fail "source is missing: the carton, folder or model file to push"
[ -n "$INPUT_REFERENCE$INPUT_OUTPUT" ] || fail "reference is missing: where to push $INPUT_SOURCE; or output, to pack it"
[ -z "$INPUT_REFERENCE" ] || [ -z "$INPUT_OUTPUT" ] || fail "got a reference and an output, want one of them"

flags=()
while IFS= read -r line; do
	line=${line%$'\r'}
	[ -z "$line" ] || flags+=("$line")
done <<<"$INPUT_FLAGS"
for name in GIT IMAGE; do
	value=INPUT_$name
	case ${!value} in
	true) flags+=("--$(printf '%s' $name | tr '[:upper:]' '[:lower:]')") ;;
	false | '') ;;
	*) fail "$(printf '%s' $name | tr '[:upper:]' '[:lower:]'): got ${!value}, want true or false" ;;
	esac
done

result=$RUNNER_TEMP/carton-oci-result.json
# field prints a text of the result's first level, or with image of that object.
field() {
	if [ "${2-}" = image ]; then
		sed -n '/^  "image": {$/,/^  }/ s/^    "'"$1"'": "\(.*\)",*$/\1/p' "$result"
	else
		sed -n 's/^  "'"$1"'": "\(.*\)",*$/\1/p' "$result"
	fi
}
rows=
output() {
	[ -n "$2" ] || return 0
	printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
	# shellcheck disable=SC2016 # Markdown's
	rows+=$(printf '| %s | `%s` |' "$1" "$2")$'\n'
}

if [ -n "$INPUT_OUTPUT" ]; then
	carton-oci pack --format json ${flags[@]+"${flags[@]}"} --output "$INPUT_OUTPUT" -- "$INPUT_SOURCE" >"$result"
	cat "$result"
	output path "$(field path)"
	output model-hash "$(field modelHash)"
	title=Packed hint=
else
	reference=$(lowered "$INPUT_REFERENCE")
	IFS=, read -r -a parts <<<"$reference" # HOST/REPOSITORY:TAG, and more tags
	repository=${parts[0]%@*}
	name=${repository##*/}
	repository=${repository%"$name"}${name%:*}
	# Where the tags point now. What can't be asked for now is taken for new: the
	# push says what is wrong.
	before=
	for ((i = 0; i < ${#parts[@]}; i++)); do
		place=${parts[0]}
		[ "$i" = 0 ] || place=$repository:${parts[i]}
		before+=$(carton-oci resolve --quiet -- "$place" 2>/dev/null || echo none)$'\n'
	done
	carton-oci push --format json ${flags[@]+"${flags[@]}"} -- "$INPUT_SOURCE" "$reference" >"$result"
	cat "$result"
	digest=$(field digest)
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail "carton-oci told no digest"
	changed=false
	while IFS= read -r was; do
		[ -z "$was" ] || [ "$was" = "$digest" ] || changed=true
	done <<<"$before"
	output reference "$(field reference)"
	output repository "$repository"
	output digest "$digest"
	output image-digest "$(field digest image)"
	output model-hash "$(field modelHash)"
	output changed "$changed"
	title=Pushed hint="carton-oci pull $repository@$digest"
fi
{
	printf '### %s with carton-oci\n\n| | |\n|---|---|\n%s' "$title" "$rows"
	# shellcheck disable=SC2016 # Markdown's
	[ -z "$hint" ] || printf '\n```\n%s\n```\n' "$hint"
} >>"$GITHUB_STEP_SUMMARY"

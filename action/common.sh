# shellcheck shell=bash
# What the steps of action.yml share. They run under bash 3.2 and later: macOS has
# no other.

# fail ends the step with an error that GitHub shows on the run's page. Line ends of
# what somebody wrote would begin another command of the runner's.
fail() {
	printf '::error title=carton-oci::%s\n' "$(printf '%s' "$*" | tr '\r\n%' '   ')"
	exit 1
}

# lowered writes the repository of a reference in lower case, as registries want it:
# GitHub's owners and repositories may have upper case. Tag and digest stay, and so
# does an image layout's folder.
lowered() {
	case $1 in
	oci://*) ;;
	oci:* | oci-archive:* | ./* | /* | *.oci.tar*) printf '%s' "$1" && return ;;
	*/*) ;;
	*) printf '%s' "$1" && return ;;
	esac
	local folder=${1%%,*} name repository
	folder=${folder%/*}
	name=${1#"$folder"/} # with tags or a digest
	repository=${name%%[:@]*}
	printf '%s/%s' "$folder" "$repository" | tr '[:upper:]' '[:lower:]'
	printf '%s' "${name#"$repository"}"
}

package pmf

// FormatVersion is the one version of the format there is. What is written of a
// tree into carton.toml says it, too (pkg/pack).
const FormatVersion = "1.0.0"

// checkVersion checks the version of the format that a document says it has.
func checkVersion(v value) {
	if s, ok := v.text(); ok && s != FormatVersion {
		v.violate(RuleFormatVersion, "is version %s of the format, and there is only %s", short(s), FormatVersion)
	}
}

package carton

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// windowsDevices can't be names of files on Windows, whatever their extension
// (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
var windowsDevices = wordSet(`con prn aux nul conin$ conout$
	com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 com¹ com² com³
	lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9 lpt¹ lpt² lpt³`)

// unportable says why a path that CheckPath accepts is trouble somewhere; ""
// where it is not.
func unportable(p string) string {
	if !isASCII(p) {
		if !norm.NFC.IsNormalString(p) {
			return "name is not in Unicode's normal form C: macOS and others may know it by another"
		}
		for _, r := range p {
			if unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
				return fmt.Sprintf("name holds the invisible character %U", r)
			}
		}
	}
	return notOnWindows(p)
}

// notOnWindows says why no file of Windows can have the path; "" where one can.
func notOnWindows(p string) string {
	for name := range strings.SplitSeq(p, "/") {
		base, _, _ := strings.Cut(strings.ToLower(name), ".")
		switch {
		case windowsDevices[strings.TrimRight(base, " ")]:
			return "name is a device's on Windows"
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return "a component ends in a dot or space, which Windows drops"
		case strings.ContainsAny(name, `<>:"|?*`):
			return `name holds one of < > : " | ? *, which Windows can't have`
		}
	}
	return ""
}

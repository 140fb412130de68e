package main

import (
	"fmt"
	"os"
	"strings"
)

// rewrite replaces what is between a document's marks for name.
func rewrite(doc, name, text string) {
	old, err := os.ReadFile(doc)
	check(err)
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		check(fmt.Errorf("%s: want the lines %q and %q", doc, strings.TrimSpace(begin), end))
	}
	check(os.WriteFile(doc, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644))
}

// facts prints what is measured on, and with what.
const facts = `
echo "$(nproc) processors"
sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1
uname -sr
go version
curl --version | head -1 | cut -d' ' -f1,2
skopeo --version
for program; do go version -m "$program"; done | awk '
	$1 == "dep" && $2 ~ /oras-go|distribution.distribution/ { print $2, $3 }' | sort -u
`

// machine is one line of the facts.
func (r *rig) machine() string {
	self, err := os.Executable()
	check(err)
	lines := strings.Split(strings.TrimSpace(r.output(program{"sh", "-c", facts, "sh", self, r.path("bin", "oras")})),
		"\n")
	floor := r.measure(program{"true"})["peak"]
	return fmt.Sprintf("%s. No peak of memory below %.0f MiB can be seen.\n", strings.Join(lines, ", "), floor/(1<<20))
}

package place

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Holder says which process has locked a file, as far as this system tells: "" for
// none that is known.
func Holder(name string) string {
	fi, err := os.Stat(name)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" || field[5] != file || field[4] == "0" {
			continue
		}
		command, err := os.ReadFile("/proc/" + field[4] + "/comm")
		if err != nil {
			return "process " + field[4]
		}
		return fmt.Sprintf("process %s (%q)", field[4], strings.TrimSpace(string(command)))
	}
	return ""
}

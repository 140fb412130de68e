package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// understands makes a console understand what moves the cursor, and reports
// whether it does.
func understands(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

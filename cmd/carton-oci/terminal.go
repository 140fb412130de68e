package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// screen is standard error. What is written to it stays; below that, on a
// terminal, are lines that are drawn anew again and again: they make room for
// what is written meanwhile, and leave nothing behind. The cursor is always
// taken to be at the start of the line below them or, where somebody typed, in
// it: a terminal shows the ^C that ends the program.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	drawn int // lines
}

// Write implements io.Writer.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn > 0 {
		if _, err := io.WriteString(s.out, s.top()+clearBelow); err != nil {
			return 0, err
		}
		s.drawn = 0
	}
	return s.out.Write(text)
}

// What a terminal does, as ECMA-48 has it: clear to the end of the line, and to
// the end of the screen.
const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// top moves the cursor to the first line that was drawn.
func (s *screen) top() string {
	if s.drawn == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", s.drawn)
}

// draw puts lines in place of those that were drawn before. None may be wider
// than the terminal.
func (s *screen) draw(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn == 0 && len(lines) == 0 {
		return
	}
	var b bytes.Buffer
	b.WriteString(s.top())
	for _, line := range lines {
		b.WriteString(line + clearLine + "\r\n")
	}
	b.WriteString(clearBelow)
	s.drawn = len(lines)
	_, _ = s.out.Write(b.Bytes()) // it is no result
}

// terminalSize returns the columns and lines of the terminal that w is, 0 where
// it is none that moves its cursor.
func terminalSize(w any) (columns, lines int) {
	if s, ok := w.(*screen); ok {
		w = s.out
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) || !understands(f) {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || lines <= 0 { // a serial line does not know
		return 80, 24
	}
	return columns, lines
}

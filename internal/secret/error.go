package secret

import "strings"

// Error returns err with a text that is fit to be shown: no user info and no query
// of a URL, no known secret, and nothing that could move a terminal's cursor.
// net/http and those around it quote redirects, which may be presigned, and hosts
// repeat what they were sent.
func Error(err error) error {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, Strike(InText(err.Error())))
	if text == err.Error() {
		return err
	}
	return &redacted{text: text, err: err}
}

type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

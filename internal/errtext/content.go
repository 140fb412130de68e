package errtext

import "errors"

// content is a kind of fault that content has, whoever gives it.
type content struct{ text string }

func (c *content) Error() string { return c.text }

// Content makes a sentinel for a kind of fault that content has: it breaks a
// format, or is not what was promised. To ask again gives the same.
func Content(text string) error { return &content{text} }

// IsContent reports whether err wraps a sentinel that [Content] made.
func IsContent(err error) bool {
	var c *content
	return errors.As(err, &c)
}

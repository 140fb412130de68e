//go:build !unix

package localfile

// nonblock is nothing here: opening does not wait for anybody.
const nonblock = 0

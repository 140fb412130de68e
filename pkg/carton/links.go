package carton

// Links is a carton's LINKS: where members that the zip leaves out can be
// fetched. It is outside the model hash, so nothing it says is believed before
// the bytes had the right hash.
type Links struct {
	// URLs holds the addresses of a content, best first, by its lower-case hex
	// sha256.
	URLs map[string][]string
}

// Package progress is how a transfer tells its caller what it is doing.
//
// Libraries here never print. They call a [Func], and whoever embeds them
// draws, logs or counts.
package progress

// State says what has happened to one transfer.
type State int

// The states of one transfer, in the order in which they can occur.
const (
	// Started: the transfer is known, with its name and total.
	Started State = iota
	// Resumed: Done bytes of an earlier run are used again; nothing is said where
	// there were none.
	Resumed
	// Moving: Done has grown.
	Moving
	// Retrying: an attempt failed; Err says how; Done is where the next one starts.
	Retrying
	// Exists: the other side has the bytes already; nothing is sent.
	Exists
	// Mounted: the registry took the bytes from another of its repositories.
	Mounted
	// Finished: all bytes are there and verified.
	Finished
)

// String returns the state in one lower-case word.
func (s State) String() string {
	switch s {
	case Started:
		return "started"
	case Resumed:
		return "resumed"
	case Moving:
		return "moving"
	case Retrying:
		return "retrying"
	case Exists:
		return "exists"
	case Mounted:
		return "mounted"
	case Finished:
		return "finished"
	}
	return "unknown"
}

// Event is one step of one transfer. A transfer is one blob on a push, one
// member or bundle on a pull.
type Event struct {
	// Name is the member's path, or the layer's name where it holds many.
	Name string
	// State says what has happened.
	State State
	// Done counts the bytes that are through so far, of Total.
	Done int64
	// Total is the transfer's size in bytes, -1 where it is not known.
	Total int64
	// Err is why an attempt failed, with Retrying only.
	Err error
}

// Func receives events. It is called from many goroutines at once and from the
// middle of a transfer: it returns quickly. A nil Func is valid and means that
// nobody watches; call it through [Func.Report].
type Func func(Event)

// Report passes e to f, or nowhere where f is nil.
func (f Func) Report(e Event) {
	if f != nil {
		f(e)
	}
}

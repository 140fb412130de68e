package place

import "time"

// renamePatience is how long a rename is tried that somebody is in the way of.
const renamePatience = 2 * time.Second

// rename gives a name to what has another one beside the output; whatever had it is
// replaced.
func (o *output) rename(from, to string) error {
	return patiently(func() error { return o.parent.Rename(from, to) })
}

// patiently tries a rename until nobody is in its way any longer. On Windows who reads
// a file, or looks into a folder, may keep it from being renamed or replaced, and some
// programs read everything that is new for a moment: scanners for viruses, indexers.
func patiently(rename func() error) error {
	end := time.Now().Add(renamePatience)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := rename()
		if err == nil || !inUse(err) || time.Now().After(end) {
			return err
		}
		time.Sleep(wait)
	}
}

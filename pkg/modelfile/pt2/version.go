package pt2

import "fmt"

// archiveVersion is the archive_version that is read: there is no other yet.
const archiveVersion = "0"

// headers reads the files of one word.
func (o *opener) headers() error {
	var format, version, order, container string
	for _, file := range []struct {
		name string
		word *string
	}{
		{"archive_format", &format},
		{"archive_version", &version},
		{"byteorder", &order},
		{".data/version", &container},
	} {
		var err error
		if *file.word, err = o.files.word(file.name); err != nil {
			return err
		}
	}
	switch {
	case !o.old && format != "pt2":
		return fmt.Errorf("%w: archive_format is %s, and not pt2", ErrNotPT2, quote(format))
	case o.root != "" && version != "" && version != archiveVersion:
		return fmt.Errorf("%w: archive_version is %s, and only %s is known", ErrVersion, quote(version), archiveVersion)
	case container != "" && !isDigits(container):
		return fmt.Errorf("%w: .data/version is %s, which is not a number", ErrFormat, quote(container))
	case order != "" && order != "little" && order != "big":
		return fmt.Errorf("%w: byteorder is %s, which is neither little nor big", ErrFormat, quote(order))
	}
	o.bigEndian = order == "big"
	return o.checkSerializationID()
}

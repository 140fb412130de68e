package carton

import (
	"encoding/binary"
	"math"

	"github.com/carton-oci/carton-oci/internal/zipdir"
)

// The records of the canonical zip: [Plan] says what is in them and why.

const (
	planVersion   = 20 // the least that knows what every unzip does
	planVersion64 = 45 // zip64, APPNOTE 4.4.3.2
	planUnix      = 3 << 8
	planTime      = 0
	planDate      = 1<<5 | 1 // 1980-01-01
	planModeFile  = 0o100644
	planModeLink  = 0o120777

	planLocal64Len = 4 + 16 // the zip64 field of a local header
)

// Header returns the i-th member's local header, from 0. It needs the member's
// CRC: before [Plan.SetCRC] the error wraps ErrChecksum.
func (p *Plan) Header(i int) ([]byte, error) {
	p.mu.Lock()
	m := p.members[i]
	p.mu.Unlock()
	if !m.known {
		return nil, errNoCRC(m.Path)
	}
	b := make([]byte, 0, m.header)
	b = append32(b, zipdir.LocalSig)
	b = append16(b, m.version())
	b = m.appendCommon(b)
	b = append16(b, uint16(m.header-zipdir.LocalLen-int64(len(m.Path))))
	b = append(b, m.Path...)
	if m.data >= zipdir.Ones32 {
		b = append16(b, zipdir.Extra64)
		b = append16(b, planLocal64Len-4)
		b = append64(b, uint64(m.data))
		b = append64(b, uint64(m.data))
	}
	if m.pad > 0 {
		b = append16(b, zipExtraPad)
		b = append16(b, uint16(m.pad-4))
		b = append16(b, uint16(m.align()))
		b = append(b, make([]byte, m.pad-planPadMin)...)
	}
	return b, nil
}

// Tail returns everything behind the last member's data. It needs every CRC: the
// error wraps ErrChecksum and names a member without.
func (p *Plan) Tail() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := make([]byte, 0, p.size-p.directory)
	for i := range p.members {
		m := &p.members[i]
		if !m.known {
			return nil, errNoCRC(m.Path)
		}
		b = m.appendCentral(b)
	}
	return p.appendEnd(b, int64(len(b))), nil
}

func errNoCRC(path string) error {
	return errorf(ErrChecksum, path, "has no CRC yet: its content was not read")
}

// appendCommon adds what local and central headers share: from the flags to the
// length of the name.
func (m *planned) appendCommon(b []byte) []byte {
	b = append16(b, zipdir.FlagUTF8)
	b = append16(b, uint16(zipdir.Stored))
	b = append16(b, planTime)
	b = append16(b, planDate)
	b = append32(b, m.crc)
	b = append32(b, clip32(m.data))
	b = append32(b, clip32(m.data))
	return append16(b, uint16(len(m.Path)))
}

func (m *planned) appendCentral(b []byte) []byte {
	b = append32(b, zipdir.EntrySig)
	b = append16(b, planUnix|m.version())
	b = append16(b, m.version())
	b = m.appendCommon(b)
	b = append16(b, uint16(m.extra64Len()))
	b = append(b, make([]byte, 2+2+2)...) // comment, disk, internal attributes
	mode := uint32(planModeFile)
	if m.Target != "" {
		mode = planModeLink
	}
	b = append32(b, mode<<16)
	b = append32(b, clip32(m.offset))
	b = append(b, m.Path...)
	if n := m.extra64Len(); n > 0 {
		b = append16(b, zipdir.Extra64)
		b = append16(b, uint16(n-4))
		if m.data >= zipdir.Ones32 {
			b = append64(b, uint64(m.data))
			b = append64(b, uint64(m.data))
		}
		if m.offset >= zipdir.Ones32 {
			b = append64(b, uint64(m.offset))
		}
	}
	return b
}

// extra64Len returns the length of the central header's zip64 field.
func (m *planned) extra64Len() int {
	n := 0
	if m.data >= zipdir.Ones32 {
		n += 16
	}
	if m.offset >= zipdir.Ones32 {
		n += 8
	}
	if n > 0 {
		n += 4
	}
	return n
}

func (m *planned) version() uint16 {
	if m.extra64Len() > 0 {
		return planVersion64
	}
	return planVersion
}

// zip64 reports whether the end needs zip64 records, with a central directory of
// that many bytes.
func (p *Plan) zip64(directory int64) bool {
	return len(p.members) >= math.MaxUint16 || directory >= zipdir.Ones32 || p.directory >= zipdir.Ones32
}

func (p *Plan) appendEnd(b []byte, directory int64) []byte {
	n := uint64(len(p.members))
	if p.zip64(directory) {
		b = append32(b, zipdir.End64Sig)
		b = append64(b, zipdir.End64Len-12) // what follows this field
		b = append16(b, planUnix|planVersion64)
		b = append16(b, planVersion64)
		b = append32(b, 0) // this disk
		b = append32(b, 0) // the directory's
		b = append64(b, n) // entries on this disk
		b = append64(b, n)
		b = append64(b, uint64(directory))
		b = append64(b, uint64(p.directory))

		b = append32(b, zipdir.Locator64Sig)
		b = append32(b, 0) // the disk of the zip64 end record
		b = append64(b, uint64(p.directory+directory))
		b = append32(b, 1) // disks
	}
	short := uint16(min(n, math.MaxUint16))
	b = append32(b, zipdir.EndSig)
	b = append32(b, 0) // this disk, the directory's
	b = append16(b, short)
	b = append16(b, short)
	b = append32(b, clip32(directory))
	b = append32(b, clip32(p.directory))
	return append16(b, 0) // comment
}

// clip32 returns n, or all ones where it does not fit.
func clip32(n int64) uint32 { return uint32(min(n, zipdir.Ones32)) }

func append16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func append32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func append64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

package modeltest_test

import (
	"archive/zip"
	"bytes"
	"os"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// TestTorchsHabits: what torch itself wrote begins with the same bytes. Its first
// record is stored, as all of a PT2 archive are; its end records have the same
// form.
func TestTorchsHabits(t *testing.T) {
	torchs, err := os.ReadFile(testenv.Foreign(t, "carton/test_model.pt"))
	if err != nil {
		t.Fatal(err)
	}
	records := modeltest.Records(t, torchs)
	ours := modeltest.TorchZip("test_model", "little", modeltest.Record{Name: "data.pkl", Data: records[0].Data})
	n := 64 + len(records[0].Data) + 16 // header, data, descriptor
	if !bytes.Equal(torchs[:n], ours[:n]) {
		t.Errorf("got  %q\nwant %q", ours[:n], torchs[:n])
	}
	entry := func(b []byte) []byte {
		_, directory, _ := bytes.Cut(b, []byte("PK\x01\x02"))
		return directory[:42+len("test_model/data.pkl")]
	}
	if got, want := entry(ours), entry(torchs); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	const ends = 56 + 20 + 22
	got, want := ours[len(ours)-ends:], torchs[len(torchs)-ends:]
	for _, fixed := range [][2]int{{0, 24}, {56, 64}, {72, 84}, {96, 98}} { // between counts, sizes and offsets
		if !bytes.Equal(got[fixed[0]:fixed[1]], want[fixed[0]:fixed[1]]) {
			t.Errorf("end records differ: got %q, want %q", got, want)
		}
	}
}

// TestTorchZipIsAZip: other readers find every record, and data are aligned.
func TestTorchZipIsAZip(t *testing.T) {
	b := modeltest.TorchZip("m", "big",
		modeltest.Record{Name: "a", Data: []byte("some bytes")},
		modeltest.Record{Name: "folder/empty"},
		modeltest.Record{Name: "b", Data: bytes.Repeat([]byte{7}, 1000)})
	records := modeltest.Records(t, b) // checks every CRC
	names := ""
	for _, r := range records {
		names += r.Name + " "
		if i := bytes.Index(b, r.Data); len(r.Data) > 9 && i%64 != 0 {
			t.Errorf("%s begins at %d", r.Name, i)
		}
	}
	if want := "m/a m/folder/empty m/b m/.data/version m/byteorder m/.data/serialization_id "; names != want {
		t.Errorf("got %s, want %s", names, want)
	}
}

// TestCartonsHabits: the one public carton, which the reference implementation
// wrote, has the same habits as ours, entry by entry.
func TestCartonsHabits(t *testing.T) {
	habits := func(r *zip.Reader) map[string]zip.FileHeader {
		all := map[string]zip.FileHeader{}
		for _, f := range r.File {
			h := f.FileHeader
			all[f.Name] = zip.FileHeader{
				CreatorVersion: h.CreatorVersion, ReaderVersion: h.ReaderVersion, Flags: h.Flags, Method: h.Method,
				Modified: h.Modified, ExternalAttrs: h.ExternalAttrs,
				Extra: h.Extra, Comment: h.Comment, NonUTF8: h.NonUTF8,
			}
		}
		return all
	}
	b := modeltest.Carton(t)
	ours, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := zip.OpenReader(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	got, want := habits(ours), habits(&theirs.Reader)
	for _, name := range []string{"carton.toml", "model/main.py", "model/.carton/carton.lock", "tensor_data/tensor_2.bin", "MANIFEST"} {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if last := ours.File[len(ours.File)-1].Name; last != theirs.File[len(theirs.File)-1].Name {
		t.Errorf("the last entry is %s", last)
	}
}

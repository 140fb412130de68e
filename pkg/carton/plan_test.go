package carton_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/google/go-cmp/cmp"
)

// planFiles and planLinks are a carton with everything that its zip can hold,
// but for what is too big.
func planFiles() map[string][]byte {
	return map[string][]byte{
		"model/config.json":          []byte("{}\n"),
		"model/empty":                nil,
		"model/.hidden/a=b":          []byte("equals"),
		"model/weights.bin":          bytes.Repeat([]byte("weights!"), 1<<17), // 1 MiB
		"model/weights-1.bin":        bytes.Repeat([]byte{7}, 1<<20-1),
		"model/gewichte-ü/größe.txt": []byte("ü"),
		"tensor_data/index.toml":     []byte("tensor = []\n"),
		"misc/z":                     []byte("z"),
	}
}

func planLinks() map[string]string {
	return map[string]string{"model/l": "config.json", "model/.hidden/to": "../l"}
}

// planned makes the plan of a carton with its MANIFEST, and every CRC set.
func planned(t *testing.T, src *cartontest.Source) *carton.Plan {
	t.Helper()
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifest := src.Manifest().Bytes()
	plan, err := carton.NewPlan(append(members, carton.Member{Path: carton.ManifestName, Size: int64(len(manifest))}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range plan.Len() {
		if m := plan.Member(i); m.Target == "" {
			if err := plan.SetCRC(m.Path, crc32.ChecksumIEEE(content(t, src, m.Path))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return plan
}

func content(t *testing.T, src carton.Source, path string) []byte {
	t.Helper()
	r, err := src.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// zipOfPlan puts the zip of a plan together, member by member, and checks that each
// lies where the plan says.
func zipOfPlan(t *testing.T, src *cartontest.Source, plan *carton.Plan) []byte {
	t.Helper()
	var zip []byte
	for i := range plan.Len() {
		header, err := plan.Header(i)
		if err != nil {
			t.Fatal(err)
		}
		zip = append(zip, header...)
		m := plan.Member(i)
		b := []byte(m.Target)
		if m.Target == "" {
			b = content(t, src, m.Path)
		}
		if off, n, ok := plan.Extent(m.Path); !ok || off != int64(len(zip)) || n != int64(len(b)) {
			t.Fatalf("%s: got %d bytes at %d, the plan says %d at %d", m.Path, len(b), len(zip), n, off)
		}
		zip = append(zip, b...)
	}
	tail, err := plan.Tail()
	if err != nil {
		t.Fatal(err)
	}
	zip = append(zip, tail...)
	if int64(len(zip)) != plan.Size() {
		t.Fatalf("got %d bytes, the plan says %d", len(zip), plan.Size())
	}
	return zip
}

// The one digest that must never change: of a whole canonical carton.
func TestPlanGolden(t *testing.T) {
	const want = "4c31ed1a159abfde7b3ca4960edfcf2dc4ebfbd9b2084a0c18eeb62449a7a2f4"
	src := cartontest.New(planFiles(), planLinks())
	sum := sha256.Sum256(zipOfPlan(t, src, planned(t, src)))
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the canonical carton has the sha256 %s, want %s", got, want)
	}
}

func TestPlanDoesNotDependOnOrder(t *testing.T) {
	members := []carton.Member{
		{Path: "LINKS", Size: 1},
		{Path: "model/b", Size: 2},
		{Path: "model/B2", Size: 2},
		{Path: "MANIFEST", Size: 3},
		{Path: "carton.toml", Size: 4},
		{Path: "zzz", Size: 0},
		{Path: "model/a", Target: "./b"},
		{Path: "model/ä", Target: "../model/b"},
		{Path: "model-x", Size: 1},
	}
	want := []string{"model-x", "model/B2", "model/a", "model/b", "model/ä", "zzz", "carton.toml", "MANIFEST", "LINKS"}
	var first []byte
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		plan, err := carton.NewPlan(members)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range plan.Len() {
			m := plan.Member(i)
			got = append(got, m.Path)
			if m.Target == "" {
				if err := plan.SetCRC(m.Path, 1); err != nil {
					t.Fatal(err)
				}
			} else if m.Target != "b" {
				t.Errorf("%s: the target is %q, want the shortest: b", m.Path, m.Target)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		tail, err := plan.Tail()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = tail
		} else if !bytes.Equal(first, tail) {
			t.Error("another order gave another directory")
		}
	}
}

// Every gap that padding can have to fill, at both alignments.
func TestPlanAligns(t *testing.T) {
	for align, size := range map[int]int64{64: 1<<20 - 1, 4096: 1 << 20} {
		gaps := map[int]bool{}
		for before := range 2 * 4096 {
			plan, err := carton.NewPlan([]carton.Member{{Path: "a", Size: int64(before)}, {Path: "b", Size: size}})
			if err != nil {
				t.Fatal(err)
			}
			if off, n, ok := plan.Extent("b"); !ok || n != size || off%int64(align) != 0 {
				t.Fatalf("got %d bytes at %d, %v, want %d at a multiple of %d", n, off, ok, size, align)
			}
			if err := plan.SetCRC("b", 0); err != nil {
				t.Fatal(err)
			}
			h, err := plan.Header(1)
			if err != nil {
				t.Fatal(err)
			}
			pad := h[30+1:]
			gaps[len(pad)%align] = true
			if want := wantPad(len(pad), align); !bytes.Equal(pad, want) || len(pad) >= align+6 {
				t.Fatalf("%d bytes before: got the padding %x, want %x", before, pad, want)
			}
		}
		if len(gaps) != align {
			t.Errorf("alignment %d: the test made %d gaps, want all", align, len(gaps))
		}
	}
}

// wantPad is a padding field of n bytes as Plan's documentation has it.
func wantPad(n, align int) []byte {
	if n == 0 {
		return []byte{}
	}
	b := make([]byte, n)
	copy(b, "\x1e\xa1")
	binary.LittleEndian.PutUint16(b[2:], uint16(n-4))
	binary.LittleEndian.PutUint16(b[4:], uint16(align))
	return b
}

func TestPlanRefuses(t *testing.T) {
	file := func(path string) carton.Member { return carton.Member{Path: path} }
	link := func(path, target string) carton.Member { return carton.Member{Path: path, Target: target} }
	for _, c := range []struct {
		name    string
		members []carton.Member
		want    error
	}{
		{"no size", []carton.Member{{Path: "a", Size: -1}}, carton.ErrFormat},
		{"a name twice", []carton.Member{file("a"), file("a")}, carton.ErrInsecurePath},
		{"case", []carton.Member{file("a"), file("A")}, carton.ErrInsecurePath},
		{"a file as a folder", []carton.Member{file("a"), file("a/b")}, carton.ErrInsecurePath},
		{"traversal", []carton.Member{file("../a")}, carton.ErrInsecurePath},
		{"a folder", []carton.Member{file("a/")}, carton.ErrInsecurePath},
		{"a link that leads out", []carton.Member{link("model/a", "../../b")}, carton.ErrInsecurePath},
		{"a link out of model", []carton.Member{link("model/a", "../b")}, carton.ErrInsecurePath},
		{"an absolute link", []carton.Member{link("model/a", "/model/b")}, carton.ErrInsecurePath},
		{"a size", []carton.Member{{Path: "a", Size: math.MaxInt64}}, carton.ErrLimit},
		{"a sum of sizes", []carton.Member{{Path: "a", Size: 1 << 62}, {Path: "b", Size: 1 << 62}}, carton.ErrLimit},
		{"too many", make([]carton.Member, carton.MaxMembers+3), carton.ErrLimit},
	} {
		if _, err := carton.NewPlan(c.members); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestPlanNeedsEveryCRC(t *testing.T) {
	plan, err := carton.NewPlan([]carton.Member{{Path: "model/a", Size: 1}, {Path: "model/b", Size: 1}, {Path: "model/l", Target: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.SetCRC("model/b", 0); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Header": second(plan.Header(0)), "Tail": second(plan.Tail())} {
		if !errors.Is(err, carton.ErrChecksum) || !strings.Contains(err.Error(), "model/a") {
			t.Errorf("%s: got %v, want one that names model/a", name, err)
		}
	}
	for i := 1; i < 3; i++ {
		if _, err := plan.Header(i); err != nil {
			t.Errorf("the header of %s: %v", plan.Member(i).Path, err)
		}
	}
	for range 2 {
		if err := plan.SetCRC("model/a", 5); err != nil {
			t.Error(err)
		}
	}
	if _, err := plan.Tail(); err != nil {
		t.Error(err)
	}
	if err := plan.SetCRC("model/a", 6); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("another CRC: got %v, want ErrChecksum", err)
	}
	if err := plan.SetCRC("model/l", 6); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("a wrong CRC for a symlink: got %v, want ErrChecksum", err)
	}
	if err := plan.SetCRC("model/x", 6); !errors.Is(err, carton.ErrFormat) {
		t.Errorf("no such member: got %v, want ErrFormat", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPlanOfNothing(t *testing.T) {
	plan, err := carton.NewPlan(nil)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := plan.Tail()
	if want := append([]byte("PK\x05\x06"), make([]byte, 18)...); err != nil || !bytes.Equal(tail, want) {
		t.Errorf("got %x, %v, want %x", tail, err, want)
	}
	if _, _, ok := plan.Extent("a"); ok {
		t.Error("a member that is not there has an extent")
	}
}

// FuzzPlan wants members that follow each other and data at its alignment,
// whatever the names and sizes.
func FuzzPlan(f *testing.F) {
	f.Add("a b model/c", int64(0), int64(1<<20), int64(1<<32))
	f.Add("x", int64(1<<32-1), int64(1<<32-2), int64(-1))
	f.Fuzz(func(t *testing.T, names string, s1, s2, s3 int64) {
		var members []carton.Member
		sizes := []int64{s1, s2, s3}
		for i, name := range strings.Fields(names) {
			members = append(members, carton.Member{Path: name, Size: sizes[i%3]})
		}
		plan, err := carton.NewPlan(members)
		if err != nil {
			return
		}
		end := int64(0)
		for i := range plan.Len() {
			off, n, ok := plan.Extent(plan.Member(i).Path)
			if !ok || off%64 != 0 && n > 0 || n >= 1<<20 && off%4096 != 0 || off < end || n < 0 {
				t.Fatalf("%d: %d bytes at %d behind %d, %v", i, n, off, end, ok)
			}
			end = off + n
		}
		if end > plan.Size() {
			t.Fatalf("got %d bytes, the last member ends at %d", plan.Size(), end)
		}
	})
}

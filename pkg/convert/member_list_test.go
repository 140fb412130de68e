package convert

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

func TestMemberLists(t *testing.T) {
	for text, want := range map[string][]sizedLine{
		"3:120,7,9:0":           {{3, 120}, {4, 7}, {9, 0}},
		"0:5":                   {{0, 5}},
		"0:5,6":                 {{0, 5}, {1, 6}},
		"9:1,3:1,1":             {{9, 1}, {3, 1}, {4, 1}},
		"1:9223372036854775807": {{1, math.MaxInt64}},
	} {
		if got := encodeMembers(want); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		got, err := parseMembers(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(sizedLine{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestMemberListsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "5", ",", "1:", ":1", "1:1,", "1:1,,1", "1:1:1", "1:-1", "-1:1", "+1:1", "01:1", "1:01", "1:1,2:1",
		"1: 1", "a:1", "1:0x1", "1:9223372036854775808", "200001:1",
	} {
		if got, err := parseMembers(text); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("%q: got %v, %v, want ErrFormat", text, got, err)
		}
	}
}

// One list has one text: what is read is written as it was.
func FuzzMemberLists(f *testing.F) {
	f.Add("3:120,7,9:0")
	f.Add("0:5")
	f.Add("1:1,2:1")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := parseMembers(text)
		if err != nil {
			return
		}
		if got := encodeMembers(items); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	})
}

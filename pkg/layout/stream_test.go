package layout

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
)

// streaming is a Store that takes blobs without their digests, unless err says
// otherwise.
type streaming struct {
	Store
	err   error
	calls int
}

func (s *streaming) PushStream(ctx context.Context, _ int64, open Opener, _ Watch) (digest.Digest, error) {
	s.calls++
	if s.err != nil {
		return "", s.err
	}
	r, err := open(ctx, 0)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return digest.SHA256.FromReader(r)
}

func TestPushStream(t *testing.T) {
	const text = "some bytes"
	broken := errors.New("broken")
	dir, err := CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		store  Store
		size   int64
		stored bool
		err    error
	}{
		"a store that can":               {&streaming{Store: dir}, 10, true, nil},
		"a store that can't after all":   {&streaming{Store: dir, err: ErrNoStream}, 10, false, nil},
		"a store that fails":             {&streaming{Store: dir, err: broken}, 10, false, broken},
		"a folder":                       {dir, 10, false, nil},
		"a folder, and another size":     {dir, 11, false, ErrDigest},
		"a folder, and yet another size": {dir, 9, false, ErrDigest},
	} {
		opens := 0
		open := func(context.Context, int64) (io.ReadCloser, error) {
			opens++
			return io.NopCloser(&textReader{text: text}), nil
		}
		got, stored, err := PushStream(t.Context(), c.store, c.size, open, Watch{})
		if !errors.Is(err, c.err) || stored != c.stored {
			t.Errorf("%s: got %v, stored: %v, want %v, %v", name, err, stored, c.err, c.stored)
		}
		if c.err == nil && (got != digest.FromString(text) || opens != 1) {
			t.Errorf("%s: got %s after %d reads", name, got, opens)
		}
	}
	if _, err := dir.Stat(t.Context(), digest.FromString(text)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a folder keeps what was only read: %v", err)
	}
	failing := func(context.Context, int64) (io.ReadCloser, error) { return nil, broken }
	if _, _, err := PushStream(t.Context(), dir, 1, failing, Watch{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// textReader gives a byte at a time.
type textReader struct{ text string }

func (r *textReader) Read(b []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:1], r.text)
	r.text = r.text[n:]
	return n, nil
}

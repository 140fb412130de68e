package httprange

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

func TestReaderAtReadsLikeTheContent(t *testing.T) {
	data := content(600_000)
	var requests atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
	r, err := NewReaderAt(t.Context(), &Getter{Do: s.Client().Do, Policy: fast()}, get(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != int64(len(data)) || requests.Load() != 1 {
		t.Errorf("got size %d after %d requests, want %d after 1", r.Size(), requests.Load(), len(data))
	}
	if err := iotest.TestReader(io.NewSectionReader(r, 0, r.Size()), data); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// service is the registry that is in use at the moment.
type service struct {
	dir  string
	wire *wire
	made *maker

	mu      sync.Mutex // for what follows, while it is replaced
	end     func() error
	storage string
	current atomic.Pointer[http.Handler]
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*s.current.Load()).ServeHTTP(w, r)
}

// fresh replaces the registry by an empty one.
func (s *service) fresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	storage, err := os.MkdirTemp(s.dir, "registry")
	if err != nil {
		return err
	}
	h, end := testregistry.NewHandler(context.WithoutCancel(ctx), storage)
	s.current.Store(&h)
	if s.end != nil {
		if err := s.end(); err != nil {
			return err
		}
		if err := os.RemoveAll(s.storage); err != nil {
			return err
		}
	}
	s.end, s.storage = end, storage
	return nil
}

// control is what the benchmark tells the server:
//
//	POST /fresh                an empty registry, and no counts
//	POST /reset                no counts
//	GET /wire                  {"In": bytes, "Out": bytes}
//	GET /reached?in=N or out=N answers when so much has passed since the reset
//	POST /describe?size=N&tensor=T&hashed=true
//	                           {"Repository": …, "TensorSum": …}: a carton with
//	                           one weight of N bytes, in it a tensor of T bytes,
//	                           and that one's sha256
func (s *service) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fresh", func(w http.ResponseWriter, r *http.Request) {
		if err := s.fresh(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.wire.reset()
	})
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { s.wire.reset() })
	mux.HandleFunc("GET /wire", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int64{"In": s.wire.in.Load(), "Out": s.wire.out.Load()})
	})
	mux.HandleFunc("GET /reached", func(_ http.ResponseWriter, r *http.Request) {
		in, errIn := strconv.ParseInt(r.FormValue("in"), 10, 64)
		out, errOut := strconv.ParseInt(r.FormValue("out"), 10, 64)
		for r.Context().Err() == nil {
			if errIn == nil && s.wire.in.Load() >= in || errOut == nil && s.wire.out.Load() >= out {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	mux.HandleFunc("POST /describe", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.ParseInt(r.FormValue("size"), 10, 64)
		tensor, errTensor := strconv.ParseInt(r.FormValue("tensor"), 10, 64)
		if err != nil || errTensor != nil {
			http.Error(w, fmt.Sprint(err, errTensor), http.StatusBadRequest)
			return
		}
		repository, sum, err := s.made.describe(size, tensor, r.FormValue("hashed") == "true")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"Repository": repository, "TensorSum": sum})
	})
	return mux
}

package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Three requests one after the other on one connection wait four times, the
// connection among them; three at once, each on its own, wait twice.
func TestRoundTripsInARow(t *testing.T) {
	var asked sync.WaitGroup // by those who ask at once: nobody is answered before all have
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var counted atomic.Pointer[trips]
	counted.Store(&trips{})
	address := "http://" + lay(server.Listener, cable{delay: 20 * time.Millisecond, trips: &counted})
	get := func(client *http.Client) {
		resp, err := client.Head(address) // whose connection is used again
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}
	begin, one := time.Now(), &http.Client{Transport: &http.Transport{}}
	for range 3 {
		get(one)
	}
	if got := counted.Load().count(); got != 4 {
		t.Errorf("one after the other: got %d round trips in a row, want 4", got)
	}
	if took := time.Since(begin); took < 160*time.Millisecond {
		t.Errorf("one after the other: took %v, less than four round trips", took)
	}
	counted.Store(&trips{})
	server.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Done(); asked.Wait() })
	asked.Add(3)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}) })
	}
	all.Wait()
	if got := counted.Load().count(); got != 2 {
		t.Errorf("at once: got %d round trips in a row, want 2", got)
	}
}

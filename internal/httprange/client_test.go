package httprange

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// client returns a client that may reach these hosts.
func client(t *testing.T, o ClientOptions) *Client {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestCheckAddr(t *testing.T) {
	for address, public := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "99.255.255.255": true, "100.128.0.0": true, "172.15.255.255": true,
		"172.32.0.0": true, "169.253.255.255": true, "198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true,
		"2606:4700:4700::1111": true, "2a00::1": true, "2001:200::1": true,
		"::ffff:8.8.8.8": true, "64:ff9b::8.8.8.8": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.0": false, "100.100.100.200": false, "100.127.255.255": false,
		"127.0.0.1": false, "127.255.255.255": false, "169.254.169.254": false, "172.16.0.0": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false, "198.18.0.0": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "fc00::1": false, "fd12::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fec0::1": false, "ff02::1": false, "100::1": false, "5f00::1": false, "4000::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:0:7f00:1": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b::a00:1": false, "64:ff9b:1::1": false, "64:ff9b:1::808:808": false,
		"2002:7f00:1::": false, "2002:808:808::1": false, "2001::1": false, "2001:0:808:808::1": false, "2001:db8::1": false, "2001:2::1": false, "3fff::1": false,
	} {
		t.Run(address, func(t *testing.T) {
			err := CheckAddr(netip.MustParseAddr(address))
			if (err == nil) != public || err != nil && !errors.Is(err, ErrNotAllowed) {
				t.Errorf("got %v, want public: %v", err, public)
			}
		})
	}
	if err := CheckAddr(netip.Addr{}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("no address: got %v", err)
	}
	for address, ok := range map[string]bool{"8.8.8.8:443": true, "[::1]:443": false, "127.0.0.1:443": false, "/run/x.sock": false, "": false} {
		if err := Control("tcp", address, nil); (err == nil) != ok {
			t.Errorf("connect to %s: got %v", address, err)
		}
	}
}

func TestAllow(t *testing.T) {
	for entry, reaches := range map[string]map[string]bool{
		"models.example":      {"http://models.example/x": true, "http://MODELS.example:8080/": true, "http://a.models.example/": false, "http://models.example.org/": false, "http://models.example./": false},
		"Models.Example:8080": {"http://models.example:8080/": true, "http://models.example/": false, "http://models.example:80/": false},
		"models.example:80":   {"http://models.example/": true, "http://models.example:80/": true, "http://models.example:8080/": false},
		"models.example:443":  {"http://models.example/": false},
		"10.0.0.1":            {"http://10.0.0.1/": true, "https://10.0.0.1:8443/": true, "https://10.0.0.2/": false},
		"10.0.0.1:8443":       {"https://10.0.0.1:8443/": true, "https://10.0.0.1/": false},
		"::1":                 {"http://[::1]/": true, "http://[::1]:5000/": true, "http://[::2]/": false},
		"[::1]":               {"http://[::1]:5000/": true},
		"[::1]:5000":          {"http://[::1]:5000/": true, "http://[::1]/": false},
		"2130706433":          {"http://2130706433/": true, "https://127.0.0.1/": false},
	} {
		if err := CheckAllow(entry); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
		c := client(t, ClientOptions{Allow: []string{"other.example", entry}})
		for text, want := range reaches {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.checkURL(u); (err == nil) != want {
				t.Errorf("%s allowed, %s: got %v", entry, text, err)
			}
		}
	}
	for _, entry := range []string{"", ":80", "a:", "a:b", "a:b:c", "https://a", "a/b", "a b", "user@a", "[::1", "a?b"} {
		if err := CheckAllow(entry); err == nil {
			t.Errorf("%q is allowed as a host", entry)
		}
		if _, err := NewClient(ClientOptions{Allow: []string{entry}}); err == nil {
			t.Errorf("%q makes a client", entry)
		}
	}
}

func TestAllowedHostIsReached(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) })
	u, _ := url.Parse(s.URL)
	c := client(t, ClientOptions{Allow: []string{u.Host}})
	got, err := read(t, &Getter{Do: c.Do, Policy: fast()}, s.URL, 0, -1, -1)
	if err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = read(t, &Getter{Do: client(t, ClientOptions{}).Do, Policy: fast()}, s.URL, 0, -1, -1)
	if !errors.Is(err, ErrNotAllowed) || len(s.requests()) != 1 {
		t.Errorf("not allowed: got %v after %q", err, s.requests())
	}
}

// dns is a resolver for which every name is 127.0.0.1.
func dns(t *testing.T) *net.Resolver {
	t.Helper()
	return dnsWith(t, nil)
}

// dnsWith is dns with an IPv6 address besides, nil for none.
func dnsWith(t *testing.T, six net.IP) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		for b := make([]byte, 512); ; {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo(answer(b[:n], six), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// answer makes the response to a DNS query (RFC 1035, section 4.1): an address
// for type A, six for AAAA, and none for any other.
func answer(query []byte, six net.IP) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, type and class
	kind := int(query[end-4])<<8 | int(query[end-3])
	r := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	switch {
	case kind == 1:
		r[7] = 1
		r = append(r, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	case kind == 28 && six != nil: // RFC 3596, section 2
		r[7] = 1
		r = append(append(r, 0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 0, 0, 16), six...)
	}
	return r
}

// TestNameOfPrivateAddress: the address is judged, not the name, and it is the
// one that is connected to.
func TestNameOfPrivateAddress(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) })
	u, _ := url.Parse(s.URL)
	resolver := dns(t)
	address := "http://models.example:" + u.Port()
	c := client(t, ClientOptions{Allow: []string{"models.example"}, resolver: resolver})
	if got, err := read(t, &Getter{Do: c.Do, Policy: fast()}, address, 0, -1, -1); err != nil || string(got) != "content" {
		t.Fatalf("allowed by name: got %q, %v", got, err)
	}
	c = client(t, ClientOptions{resolver: resolver})
	_, err := read(t, &Getter{Do: c.Do, Policy: fast()}, "https://models.example:"+u.Port(), 0, -1, -1)
	var refused *NotAllowedError
	if !errors.As(err, &refused) || refused.Host != "models.example:"+u.Port() {
		t.Errorf("got %v, want the host refused", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestBrokenIPv6: an IPv6 address that nothing answers at costs a moment, not
// the transfer.
func TestBrokenIPv6(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) })
	u, _ := url.Parse(s.URL)
	c := client(t, ClientOptions{Allow: []string{"models.example"}, resolver: dnsWith(t, net.ParseIP("100::1"))}) // RFC 6666: discarded
	got, err := read(t, &Getter{Do: c.Do, Policy: fast()}, "http://models.example:"+u.Port(), 0, -1, -1)
	if err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestProxy: the environment's proxy is used only where its host is allowed.
func TestProxy(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.String()) })
	u, _ := url.Parse(s.URL)
	proxy := func(*http.Request) (*url.URL, error) { return u, nil }

	c := client(t, ClientOptions{Allow: []string{u.Host, "models.example"}, proxy: proxy})
	got, err := read(t, &Getter{Do: c.Do, Policy: fast()}, "http://models.example/x", 0, -1, -1)
	if err != nil || string(got) != "http://models.example/x" {
		t.Errorf("proxy allowed: got %q, %v", got, err)
	}
	c = client(t, ClientOptions{Allow: []string{"models.example"}, proxy: proxy, resolver: dns(t)})
	_, err = read(t, &Getter{Do: c.Do, Policy: Policy{Attempts: 1}}, "http://models.example:1/x", 0, -1, -1)
	if err == nil || len(s.requests()) != 1 {
		t.Errorf("proxy not allowed: got %v after %q", err, s.requests())
	}
	broken := errors.New("proxy misconfigured")
	c = client(t, ClientOptions{Allow: []string{"models.example"}, proxy: func(*http.Request) (*url.URL, error) { return nil, broken }})
	if _, err = read(t, &Getter{Do: c.Do, Policy: fast()}, "http://models.example/x", 0, -1, -1); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestNothingIsSentAlong: what a request tells of who asks.
func TestNothingIsSentAlong(t *testing.T) {
	var s *server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, s.URL+"/next", http.StatusFound)
	}, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Referer", "Cookie", "Authorization", "Proxy-Authorization"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("got %s: %s", name, v)
			}
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("got Accept-Encoding %q", got)
		}
		_, _ = w.Write([]byte("content"))
	})
	u, _ := url.Parse(s.URL)
	c := client(t, ClientOptions{Allow: []string{u.Host}})
	if _, err := read(t, &Getter{Do: c.Do, Policy: fast()}, s.URL, 0, -1, -1); err != nil {
		t.Error(err)
	}
}

// TestCertificates: one that is not trusted is final.
func TestCertificates(t *testing.T) {
	requests := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	g := &Getter{Do: client(t, ClientOptions{Allow: []string{u.Host}}).Do, Policy: fast()}
	if _, err := read(t, g, s.URL, 0, -1, -1); err == nil || strings.Contains(err.Error(), "gave up") || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want a certificate refused at once", err)
	}
	plain := serve(t, func(http.ResponseWriter, *http.Request) { requests++ })
	pu, _ := url.Parse(plain.URL)
	g = &Getter{Do: client(t, ClientOptions{Allow: []string{pu.Host}}).Do, Policy: fast()}
	if _, err := read(t, g, "https://"+pu.Host, 0, -1, -1); err == nil || strings.Contains(err.Error(), "gave up") {
		t.Errorf("got %v, want a server without TLS refused at once", err)
	}
	if requests != 0 {
		t.Errorf("got %d requests", requests)
	}
}

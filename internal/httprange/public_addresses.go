package httprange

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// special are the parts of the address space that are not the public internet,
// of the IANA registries of special-purpose addresses:
// https://www.iana.org/assignments/iana-ipv4-special-registry and
// https://www.iana.org/assignments/iana-ipv6-special-registry. IPv6 outside
// 2000::/3 is refused as a whole. What is here means another host on every
// machine: its own addresses, those of one link, and those at which clouds answer
// a machine with its secrets.
var special = []struct {
	prefix netip.Prefix
	what   string
	here   bool
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network", true},
	{netip.MustParsePrefix("10.0.0.0/8"), "private", false},
	{netip.MustParsePrefix("100.100.100.200/32"), "Alibaba Cloud's metadata", true},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared (carrier-grade NAT)", false},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", true},
	// It is a public address: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's metadata", true},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local", true},
	{netip.MustParsePrefix("172.16.0.0/12"), "private", false},
	{netip.MustParsePrefix("192.0.0.192/32"), "Oracle Cloud's metadata", true},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments", false},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation", false},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay", false},
	{netip.MustParsePrefix("192.168.0.0/16"), "private", false},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking", false},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation", false},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", true},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved", true},
	{netip.MustParsePrefix("::/128"), "unspecified", true},
	{netip.MustParsePrefix("::1/128"), "loopback", true},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments (Teredo)", false},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation", false},
	{netip.MustParsePrefix("2002::/16"), "6to4", false},
	{netip.MustParsePrefix("3fff::/20"), "documentation", false},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "AWS's metadata", true},
	{netip.MustParsePrefix("fd20:ce::254/128"), "Google Cloud's metadata", true},
	{netip.MustParsePrefix("fc00::/7"), "private", false},
	{netip.MustParsePrefix("fe80::/10"), "link-local", true},
	{netip.MustParsePrefix("ff00::/8"), "multicast", true},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// CheckAddr returns an error wrapping ErrNotAllowed unless a is a public unicast
// address. An IPv4 address inside an IPv6 one is judged by itself where the
// network would connect to it: IPv4-mapped, and NAT64 (RFC 6052), through which
// an IPv6-only network reaches every IPv4 host.
func CheckAddr(a netip.Addr) error {
	plain := inner(a)
	for _, r := range special {
		if r.prefix.Contains(plain) {
			return fmt.Errorf("%w: %s is not a public address: %s", ErrNotAllowed, a, r.what)
		}
	}
	if plain.Is6() && !globalUnicast.Contains(plain) || !plain.IsValid() {
		return fmt.Errorf("%w: %s is not a public address", ErrNotAllowed, a)
	}
	return nil
}

// CheckNotLocal returns an error wrapping ErrNotAllowed for an address that means
// another host on every machine: loopback, link-local, a cloud's metadata service.
// Private networks are none.
func CheckNotLocal(a netip.Addr) error {
	plain := inner(a)
	for _, r := range special {
		if r.here && r.prefix.Contains(plain) {
			return fmt.Errorf("%w: %s is this machine's, or its cloud's, alone", ErrNotAllowed, a)
		}
	}
	return nil
}

// inner returns the address that the network connects to.
func inner(a netip.Addr) netip.Addr {
	plain := a.Unmap().WithZone("")
	if nat64.Contains(plain) {
		b := plain.As16()
		plain = netip.AddrFrom4([4]byte(b[12:]))
	}
	return plain
}

// CheckHost judges the host of a URL that a stranger wrote, before any lookup: by
// check, where it is a literal address. A name that may become an address later,
// by IDNA or in a notation that resolvers read, is refused.
func CheckHost(u *url.URL, check func(netip.Addr) error) error {
	host := strings.ToLower(u.Hostname())
	if a, err := netip.ParseAddr(host); err == nil {
		return check(a)
	}
	ascii := strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if host == "" || !ascii || endsInNumber(host) {
		return fmt.Errorf("%w: %s is neither a name nor an address in its usual form", ErrNotAllowed,
			errtext.OneLine(host))
	}
	return nil
}

// Control is a net.Dialer's Control that refuses to connect to anything but
// public addresses. It sees the address after name resolution, and the one that
// is connected to: a name that resolves anew can't slip through.
func Control(_, address string, _ syscall.RawConn) error { return control(address, CheckAddr) }

// ControlNotLocal is Control by the rule of [CheckNotLocal].
func ControlNotLocal(_, address string, _ syscall.RawConn) error {
	return control(address, CheckNotLocal)
}

func control(address string, check func(netip.Addr) error) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: address %q", ErrNotAllowed, address)
	}
	return check(ap.Addr())
}

package lan

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// LAN is a switch, and what is plugged in.
type LAN struct {
	hub      *namespace
	machines int
}

// Machine is a network of its own with one cable. A nil machine is this computer.
type Machine struct {
	// Address is the machine's, an IPv4 address of those that RFC 5737 keeps for examples.
	Address string

	lan  *LAN
	port string // of the switch
	net  *namespace
}

// New makes a switch that nothing is plugged in.
func New(t testing.TB) *LAN {
	t.Helper()
	hub, err := newNamespace(t)
	if err != nil {
		testenv.NotChecked(t, "no network namespace can be made here: %v", err)
	}
	testenv.Program(t, "ip")
	l := &LAN{hub: hub}
	if err := l.ip(hub, "link add switch type bridge", "link set switch up"); err != nil {
		testenv.NotChecked(t, "no bridge can be made here: %v", err)
	}
	return l
}

// Machine plugs another one in.
func (l *LAN) Machine(t testing.TB) *Machine {
	t.Helper()
	own, err := newNamespace(t)
	if err != nil {
		t.Fatal(err)
	}
	l.machines++
	m := &Machine{
		Address: fmt.Sprintf("192.0.2.%d", l.machines), lan: l, net: own,
		port: fmt.Sprintf("port%d", l.machines),
	}
	err = l.ip(l.hub, "link add "+m.port+" type veth peer name eth0 netns "+own.path(),
		"link set "+m.port+" master switch up")
	if err == nil {
		err = l.ip(own, "address add "+m.Address+"/24 dev eth0", "link set eth0 up", "link set lo up")
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ip runs commands of ip in a namespace.
func (l *LAN) ip(in *namespace, commands ...string) error {
	for _, command := range commands {
		cmd := exec.Command("ip", strings.Fields(command)...)
		var out []byte
		var err error
		in.do(func() { out, err = cmd.CombinedOutput() })
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	return nil
}

// Do calls f, in this goroutine, so that what f itself listens on, dials and starts is on
// the machine. What other goroutines do meanwhile is not.
func (m *Machine) Do(f func()) {
	if m == nil {
		f()
		return
	}
	m.net.do(f)
}

// Listen listens on a port of the machine's; 0 is one that is free.
func (m *Machine) Listen(t testing.TB, port int) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	m.Do(func() { l, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", m.Address, port)) })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// DialContext connects from the machine to an address of the switch's.
func (m *Machine) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	m.Do(func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, address) })
	return conn, err
}

// Unplug pulls the machine's cable out, for good.
func (m *Machine) Unplug(t testing.TB) {
	t.Helper()
	if err := m.lan.ip(m.lan.hub, "link set "+m.port+" down"); err != nil {
		t.Fatal(err)
	}
}

// Sent returns how many bytes the machine has put on its cable, headers too, as the
// kernel counts them.
func (m *Machine) Sent(t testing.TB) int64 {
	t.Helper()
	var text []byte
	var err error
	m.Do(func() { text, err = os.ReadFile("/proc/thread-self/net/dev") })
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		// Name, eight figures of what was received, and as many of what was sent: bytes
		// are the first of each.
		if fields := strings.Fields(line); len(fields) == 17 && fields[0] == "eth0:" {
			n, err := strconv.ParseInt(fields[9], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no eth0 in %q", text)
	return 0
}

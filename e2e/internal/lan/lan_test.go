package lan_test

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/lan"
)

// sendFrom lets a machine answer one connection with so many bytes.
func sendFrom(t *testing.T, m *lan.Machine, n int) string {
	t.Helper()
	l := m.Listen(t, 0)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write(make([]byte, n))
	}()
	return l.Addr().String()
}

// What is measured with it rests on its telling who sent what.
func TestWhatAMachineSendsIsCounted(t *testing.T) {
	l := lan.New(t)
	from, to, other := l.Machine(t), l.Machine(t), l.Machine(t)
	const size = 1 << 20
	conn, err := to.DialContext(t.Context(), "tcp", sendFrom(t, from, size))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.Copy(io.Discard, conn); err != nil || got != size {
		t.Fatalf("got %d bytes, %v", got, err)
	}
	if got := from.Sent(t); got < size || got > size*11/10 {
		t.Errorf("got %d bytes from who sent, want %d and headers", got, size)
	}
	for _, m := range []*lan.Machine{to, other} {
		if got := m.Sent(t); got > size/10 {
			t.Errorf("got %d bytes from %s, which sent nothing", got, m.Address)
		}
	}
}

func TestAMachineThatIsUnpluggedIsGone(t *testing.T) {
	l := lan.New(t)
	from, to := l.Machine(t), l.Machine(t)
	address := sendFrom(t, from, 1)
	from.Unplug(t)
	if conn, err := to.DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("the machine is reached all the same")
	}
}

func TestAProgramIsStartedOnAMachine(t *testing.T) {
	m := lan.New(t).Machine(t)
	var out []byte
	var err error
	m.Do(func() { out, err = exec.Command("ip", "-brief", "address").CombinedOutput() })
	if err != nil || !strings.Contains(string(out), m.Address) {
		t.Errorf("got %q, %v, want the address %s", out, err, m.Address)
	}
	if out, err = exec.Command("ip", "-brief", "address").CombinedOutput(); err != nil || strings.Contains(string(out), m.Address+"/") {
		t.Errorf("got %q, %v, want this computer's addresses behind it", out, err)
	}
}

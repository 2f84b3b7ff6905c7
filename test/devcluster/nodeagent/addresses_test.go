package nodeagent

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesComeBackLast(t *testing.T) {
	pool, err := newAddresses("127.9.8.0/29")
	if err != nil {
		t.Fatal(err)
	}
	lend := func() string {
		t.Helper()
		ip, err := pool.Lend()
		if err != nil {
			t.Fatal(err)
		}
		return ip
	}
	first, second := lend(), lend()
	pool.Return(first)
	got := []string{first, second, lend(), lend(), lend(), lend(), lend()}
	want := []string{"127.9.8.1", "127.9.8.2", "127.9.8.3", "127.9.8.4", "127.9.8.5", "127.9.8.6", "127.9.8.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of addresses (-want +got):\n%s", diff)
	}
	if ip, err := pool.Lend(); !errors.Is(err, errNoAddress) {
		t.Errorf("Lend() with all addresses in use = %q, %v; want %v", ip, err, errNoAddress)
	}
	pool.Return("127.9.9.1")
	if ip, err := pool.Lend(); !errors.Is(err, errNoAddress) {
		t.Errorf("Lend() after a foreign address was returned = %q, %v; want %v", ip, err, errNoAddress)
	}
}

func TestAddressBlockMustBeLoopback(t *testing.T) {
	for _, cidr := range []string{"", "10.0.0.0/24", "127.0.0.0/8", "127.0.0.1/32", "::1/128", "127.0.0.1"} {
		if _, err := newAddresses(cidr); err == nil {
			t.Errorf("newAddresses(%q) succeeded", cidr)
		}
	}
}

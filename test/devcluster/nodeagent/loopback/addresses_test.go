package loopback

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAReleasedAddressIsReusedLast(t *testing.T) {
	pool, err := NewAddresses("127.9.8.0/29")
	if err != nil {
		t.Fatal(err)
	}
	allocate := func() string {
		t.Helper()
		ip, err := pool.Allocate()
		if err != nil {
			t.Fatal(err)
		}
		return ip
	}
	first, second := allocate(), allocate()
	pool.Release(first)
	got := []string{first, second, allocate(), allocate(), allocate(), allocate(), allocate()}
	want := []string{"127.9.8.1", "127.9.8.2", "127.9.8.3", "127.9.8.4", "127.9.8.5", "127.9.8.6", "127.9.8.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of addresses (-want +got):\n%s", diff)
	}
	if ip, err := pool.Allocate(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("Allocate() with all addresses in use = %q, %v; want %v", ip, err, ErrNoAddress)
	}
	pool.Release("127.9.9.1")
	if ip, err := pool.Allocate(); !errors.Is(err, ErrNoAddress) {
		t.Errorf("Allocate() after a release of an address outside the block = %q, %v; want %v", ip, err, ErrNoAddress)
	}
}

func TestAddressBlockMustBeLoopback(t *testing.T) {
	for _, cidr := range []string{"", "10.0.0.0/24", "127.0.0.0/8", "127.0.0.1/32", "::1/128", "127.0.0.1"} {
		if _, err := NewAddresses(cidr); err == nil {
			t.Errorf("NewAddresses(%q) succeeded", cidr)
		}
	}
}

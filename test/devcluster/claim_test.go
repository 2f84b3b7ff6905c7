package devcluster

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClaimsOfOneMachineDifferAndComeBack(t *testing.T) {
	runs := t.TempDir()
	first, err := claimMachine(t.Context(), runs, "")
	must(t, err)
	second, err := claimMachine(t.Context(), runs, "")
	must(t, err)
	defer second.release()
	if first.dir == second.dir || first.block.host() == second.block.host() || first.block.podCIDR() == second.block.podCIDR() {
		t.Errorf("two claims share something: %+v and %+v", first, second)
	}
	if got := Owner(first.dir); got != os.Getpid() {
		t.Errorf("owner of a claimed directory is %d, want this process, %d", got, os.Getpid())
	}
	first.release()
	if got := Owner(first.dir); got != 0 {
		t.Errorf("owner of a released directory is %d, want none", got)
	}
}

func TestADirectoryIsClaimedOnce(t *testing.T) {
	runs := t.TempDir()
	dir := filepath.Join(runs, "mine")
	c, err := claimMachine(t.Context(), runs, dir)
	must(t, err)
	defer c.release()
	if _, err := claimMachine(t.Context(), runs, dir); err == nil || !strings.Contains(err.Error(), "another cluster runs in "+dir) {
		t.Errorf("second claim: %v", err)
	}
}

func TestADirectoryWithForeignFilesIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	must(t, os.WriteFile(precious, nil, 0o600))
	if _, err := claimMachine(t.Context(), t.TempDir(), dir); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("claim: %v, want one that names the foreign file", err)
	}
	if !exists(precious) {
		t.Error("the foreign file is gone")
	}
}

func TestTheDirectoryOfAKilledClusterIsSweptByTheNext(t *testing.T) {
	runs := t.TempDir()
	dead, err := claimMachine(t.Context(), runs, filepath.Join(runs, "dead"))
	must(t, err)
	alive, err := claimMachine(t.Context(), runs, filepath.Join(runs, "alive"))
	must(t, err)
	defer alive.release()
	dead.release()
	next, err := claimMachine(t.Context(), runs, "")
	must(t, err)
	defer next.release()
	if exists(dead.dir) || !exists(alive.dir) {
		t.Errorf("dead one there: %t, living one there: %t", exists(dead.dir), exists(alive.dir))
	}
}

func TestAPortInUseIsReplacedByOneBelowTheEphemeralRange(t *testing.T) {
	b, err := claimBlock()
	must(t, err)
	defer b.release()
	usual, err := b.port(6443)
	if err != nil || usual != 6443 {
		t.Skipf("port 6443 is taken for all addresses of this machine: got %d, %v", usual, err)
	}
	listener, err := net.Listen("tcp", b.host()+":6443")
	must(t, err)
	defer listener.Close()
	got, err := b.port(6443)
	must(t, err)
	if got < 20000 || got >= 32768 {
		t.Errorf("got port %d", got)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

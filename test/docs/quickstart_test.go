package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// The address at which Heliostat listens on the page, and the name of the dev cluster there. The test uses a free port
// and another name, because the machine may already use both.
const (
	address = "127.0.0.1:8090"
	name    = "default"
)

// TestTheQuickStartCanBeTyped follows docs/quickstart.md. It uses the machine's caches of Go and of the dev cluster, so
// that nothing is compiled twice.
func TestTheQuickStartCanBeTyped(t *testing.T) {
	cache, err := devcluster.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fmt.Sprintf("page-%d", os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	source := copied(t)
	page, err := os.ReadFile(filepath.Join(source, "docs/quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	env := environment(t, cache, cluster)
	t.Cleanup(func() { clusterDown(t, source, env) })
	first, second := terminal(t, source, env), terminal(t, source, env)
	ours := strings.NewReplacer(address, freePort(t), "run/"+name+"/", "run/"+cluster+"/", `"`+name+`"`, `"`+cluster+`"`)
	typed := 0
	for _, s := range steps(ours.Replace(string(page))) {
		typed++
		if s.second {
			if err := second.send(s.commands); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if strings.HasPrefix(s.commands, "make devcluster-down") {
			said, err := second.interrupt(time.Minute)
			if err != nil || !strings.Contains(said, `"msg":"serving"`) {
				t.Errorf("Heliostat ends with %v after Ctrl-C, and said:\n%s", err, said)
			}
		}
		printed, err := first.run(ctx, s.commands)
		t.Logf("%s%s", s.commands, printed)
		if err != nil {
			t.Fatalf("%s%v", s.commands, err)
		}
		if line := missing(s.shown, printed); line != "" {
			t.Errorf("the page shows %q, which was not printed, or not there", line)
		}
	}
	if typed < 8 {
		t.Errorf("only %d blocks were typed", typed)
	}
	if pid := devcluster.Owner(filepath.Join(devcluster.RunDir(cache), cluster)); pid != 0 {
		t.Error("the dev cluster still runs at the end of the page")
	}
}

// copied returns a copy of the source without build outputs and without git.
func copied(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	arguments := []string{"-R"}
	for _, entry := range entries {
		if name := entry.Name(); name != ".git" && name != "bin" {
			arguments = append(arguments, filepath.Join(root, name))
		}
	}
	if out, err := exec.Command("cp", append(arguments, to)...).CombinedOutput(); err != nil {
		t.Fatalf("copying the source: %v: %s", err, out)
	}
	return to
}

// emptyHome returns a home directory that contains only a link to the cache of dev clusters, where the page expects it.
func emptyHome(t *testing.T, cache string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(cache, filepath.Join(home, ".cache", "heliostat")); err != nil {
		t.Fatal(err)
	}
	return home
}

// environment returns the environment of a clean shell with an empty home.
func environment(t *testing.T, cache, cluster string) []string {
	t.Helper()
	env := []string{"HOME=" + emptyHome(t, cache), "PATH=" + os.Getenv("PATH"), "HELIOSTAT_CACHE=" + cache, "DEVCLUSTER=" + cluster}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatalf("go env %s: %v", name, err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

func terminal(t *testing.T, source string, env []string) *shell {
	t.Helper()
	s, err := open(source, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// clusterDown stops the dev cluster if the page did not stop it.
func clusterDown(t *testing.T, source string, env []string) {
	t.Helper()
	cmd := exec.Command("make", "devcluster-down")
	cmd.Dir, cmd.Env = source, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("ending the dev cluster: %v: %s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := rig.FreeAddress("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

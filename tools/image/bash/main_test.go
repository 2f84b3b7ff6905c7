package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asShell is the environment variable that makes the test binary run as the shell.
const asShell = "HELIOSTAT_TEST_SHELL"

func TestMain(m *testing.M) {
	if os.Getenv(asShell) != "" {
		main()
	}
	os.Exit(m.Run())
}

// shell returns a command that runs this shell with arguments.
func shell(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), asShell+"=1")
	return c
}

func TestScriptsRunAsInBash(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		out  string
		code int
	}{
		"as KubeRay starts containers":      {[]string{"-c", "--", "echo one"}, "one\n", 0},
		"as a login shell":                  {[]string{"-cl", "--", "echo one"}, "one\n", 0},
		"without --":                        {[]string{"-c", "echo one"}, "one\n", 0},
		"with a name and a parameter":       {[]string{"-c", `echo "$0 $1"`, "n", "p"}, "n p\n", 0},
		"an exit code":                      {[]string{"-c", "exit 7"}, "", 7},
		"a program's exit code":             {[]string{"-c", "false; x=$?; cat /nothing-here 2>&- || exit $((x+1))"}, "", 2},
		"a pipe":                            {[]string{"-c", "echo b | tr b c"}, "c\n", 0},
		"bash's own test":                   {[]string{"-c", "[[ abc == a* ]] && echo yes"}, "yes\n", 0},
		"a substituted command":             {[]string{"-c", "/bin/echo $(/bin/echo inner)"}, "inner\n", 0},
		"a variable for a program":          {[]string{"-c", "A=1 sh -c 'echo $A'"}, "1\n", 0},
		"a variable that is not exported":   {[]string{"-c", "A=1; sh -c 'echo [$A]'"}, "[]\n", 0},
		"a command that does not exist":     {[]string{"-c", "heliostat-nothing"}, "", 127},
		"a script that cannot be read":      {[]string{"-c", "if"}, "", 2},
		"an option that it does not know":   {[]string{"-i", "-c", "true"}, "", 2},
		"letters that it does not all know": {[]string{"-ic", "true"}, "", 2},
		"a dash alone":                      {[]string{"-", "-c", "true"}, "", 2},
		"ending at the first failure":       {[]string{"-ec", "false; echo on"}, "", 1},
		"the same, apart":                   {[]string{"-e", "-c", "--", "false; echo on"}, "", 1},
		"going on behind a failure":         {[]string{"-c", "false; echo on"}, "on\n", 0},
		"refusing what is not set":          {[]string{"-euc", "echo $nothing; echo on"}, "", 1},
		"a pipe of which a part fails":      {[]string{"-o", "pipefail", "-c", "false | true"}, "", 1},
		"a division":                        {[]string{"-c", "x=7; echo $((x/2)) $((x%2))"}, "3 1\n", 0},
		"a division by zero":                {[]string{"-c", "echo $((1/0)); echo on"}, "", 2},
		"a division by a variable":          {[]string{"-c", "x=0; echo before; echo \"$((1%x))\"; echo on"}, "", 2},
		"a division in a condition":         {[]string{"-c", "x=1; if ((x/=0)); then echo on; fi"}, "", 2},
		"no script":                         {nil, "", 2},
		"a program that a signal has ended": {[]string{"-c", "sh -c 'kill -9 $$'; exit $?"}, "", 137},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			sh := shell(t, c.args...)
			sh.Stdout = &out
			_ = sh.Run() // the exit code shows the result
			if code := sh.ProcessState.ExitCode(); code != c.code || out.String() != c.out {
				t.Errorf("got %q and exit %d, want %q and %d", out.String(), code, c.out, c.code)
			}
		})
	}
}

func TestTheShellBecomesASingleCommandAndParentOfOthers(t *testing.T) {
	for script, want := range map[string]bool{
		"sh -c 'echo $$'":           true,
		"A=b sh -c 'echo $$'":       true,
		"true; sh -c 'echo $$'":     false,
		"sh -c 'echo $$' 2>&1":      false,
		`sh -c "$(echo 'echo $')$"`: false,
	} {
		var out bytes.Buffer
		sh := shell(t, "-c", "--", script)
		sh.Stdout = &out
		if err := sh.Run(); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		said, err := strconv.Atoi(strings.TrimSpace(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		if became := said == sh.Process.Pid; became != want {
			t.Errorf("%s: process %d of the shell's %d; became it: want %v", script, said, sh.Process.Pid, want)
		}
	}
}

func TestASignalReachesTheProgramThatTheShellWaitsFor(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	sh := shell(t, "-c", "--", "true; sh -c 'trap \"echo told; exit 5\" TERM; echo >"+ready+"; i=0; while [ $((i+=1)) -lt 600 ]; do sleep 0.05; done'")
	sh.Stdout = &out
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	if err := sh.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = sh.Wait()
	if code := sh.ProcessState.ExitCode(); code != 5 || out.String() != "told\n" {
		t.Errorf("got %q and exit %d, want what the program says and its code", out.String(), code)
	}
}

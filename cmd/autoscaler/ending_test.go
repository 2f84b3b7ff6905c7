package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/cli"
)

func TestACommandThatHearsOfNoSignalIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, stopped, code := time.Now(), false, -1
		var said bytes.Buffer
		endWithin(endsWithin, func() { stopped = time.Since(begun) == 0 }, &said, func(c int) { code = c })
		if !stopped {
			t.Error("a second signal does not end the program at once")
		}
		if took := time.Since(begun); code != cli.ExitFailed || took != endsWithin || !strings.Contains(said.String(), "9s") {
			t.Errorf("ended with %d after %v, saying %q; want %d after %v, with the time in the sentence", code, took, said.String(), cli.ExitFailed, endsWithin)
		}
	})
}

func TestACommandThatIsBrokenOffIsInterruptedAndNoErrorOfTheServer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, call *http.Request) {
		end()
		<-call.Context().Done()
	}))
	defer server.Close()
	var errOut bytes.Buffer
	code := run(ctx, []string{"autoscaler", "status", "--server", server.URL}, strings.NewReader(""), io.Discard, &errOut)
	if want := "autoscaler: interrupted; a request that was already sent may still take effect\n"; code != cli.ExitFailed || errOut.String() != want {
		t.Errorf("exit %d, told %q, want %q", code, errOut.String(), want)
	}
}

// asProgram is the environment variable that makes the test binary run as the program, which reads a pipe.
const asProgram = "HELIOSTAT_TEST_AS_PROGRAM"

func TestAProgramThatReadsAPipeWithoutEndIsEndedByASignal(t *testing.T) {
	if os.Getenv(asProgram) != "" {
		os.Args = []string{"autoscaler", "plan", "--snapshot", "-"}
		main()
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(self, "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), asProgram+"=yes")
	pipe, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	program.Stderr = &said
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	// This is more than a pipe's buffer. After the write returns, the program has started to read.
	if _, err := pipe.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		if code := program.ProcessState.ExitCode(); code != cli.ExitFailed || !strings.Contains(said.String(), "shutdown exceeded 9s; forcing exit") {
			t.Errorf("it ended with %d, saying %q", code, said.String())
		}
	case <-time.After(time.Minute):
		program.Process.Kill()
		t.Error("a minute after SIGTERM it still runs")
	}
}

// Command bash is the shell of the image. It runs `bash -c -- SCRIPT`, which is how KubeRay starts the autoscaler's
// container (docs/reference/facts.md#start-of-the-sidecar), and nothing else. It is not an interactive shell, and it
// must not read files. Heliostat is the only other program in the image.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The exit codes of bash.
const (
	exitUsage    = 2
	exitNotFound = 127
	exitSignal   = 128
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line, argv[0] included, and returns the exit code.
func run(argv []string, in io.Reader, out, errOut io.Writer) int {
	l, err := parse(argv[1:])
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", argv[0], err)
		return exitUsage
	}
	script, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(l.script), l.name)
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", argv[0], err)
		return exitUsage
	}
	if err := checkDivisions(script); err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", argv[0], err)
		return exitUsage
	}
	runner, err := interp.New(interp.StdIO(in, out, errOut),
		interp.Params(slices.Concat(l.options, []string{"--"}, l.params)...),
		interp.ExecHandlers(execHandler(isOneCommand(script))))
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", argv[0], err)
		return exitUsage
	}
	err = runner.Run(context.Background(), script)
	if status, ok := errors.AsType[interp.ExitStatus](err); ok {
		return int(status)
	}
	if err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", argv[0], err)
		return 1
	}
	return 0
}

// line contains the arguments after `bash`.
type line struct {
	options []string // in the form that the builtin `set` accepts
	script  string
	name    string
	params  []string
}

// parse supports `-c`, alone or combined with other letters: `l` for a login shell, which KubeRay adds on request, and
// the options `e`, `u` and `x` of scripts. It also supports `-o pipefail`. The image has no profiles to read.
func parse(args []string) (line, error) {
	const known = "this shell knows -c, -e, -l, -u, -x, -o pipefail and --"
	var l line
	var asked bool
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		args = args[1:]
		if option == "--" {
			break
		}
		if option == "-o" && len(args) > 0 && args[0] == "pipefail" {
			l.options, args = append(l.options, option, args[0]), args[1:]
			continue
		}
		letters := strings.TrimPrefix(option, "-")
		if option == "--login" {
			letters = "l"
		}
		if letters == "" || strings.Trim(letters, "celux") != "" {
			return line{}, fmt.Errorf("%s: %s", option, known)
		}
		for _, letter := range letters {
			switch letter {
			case 'c':
				asked = true
			case 'e', 'u', 'x':
				l.options = append(l.options, "-"+string(letter))
			}
		}
	}
	if !asked || len(args) == 0 {
		return line{}, errors.New("this shell only runs `bash -c -- SCRIPT`")
	}
	l.script, l.name = args[0], "bash"
	if len(args) > 1 {
		l.name, l.params = args[1], args[2:]
	}
	return l, nil
}

// checkDivisions returns an error for a division whose divisor may be zero. Bash exits on such a division. The
// interpreter would print an error and continue with a successful status.
func checkDivisions(script *syntax.File) (err error) {
	syntax.Walk(script, func(n syntax.Node) bool {
		b, ok := n.(*syntax.BinaryArithm)
		if !ok || err != nil {
			return err == nil
		}
		switch b.Op {
		case syntax.Quo, syntax.Rem, syntax.QuoAssgn, syntax.RemAssgn:
			if divisor, ok := b.Y.(*syntax.Word); !ok || !isPositive(divisor.Lit()) {
				err = fmt.Errorf("%s: this shell divides by numbers alone that are not zero", b.OpPos)
			}
		}
		return true
	})
	return err
}

// isPositive reports whether a word is a positive decimal number.
func isPositive(word string) bool {
	n, err := strconv.ParseUint(word, 10, 63)
	return err == nil && n > 0
}

// isOneCommand reports whether a script is a single foreground command whose words start no other command. As in bash,
// the shell then execs that command, so the command receives the kubelet's signals itself.
func isOneCommand(script *syntax.File) bool {
	if len(script.Stmts) != 1 {
		return false
	}
	s := script.Stmts[0]
	if _, simple := s.Cmd.(*syntax.CallExpr); !simple || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return false
	}
	one := true
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			one = false
		}
		return one
	})
	return one
}

// execHandler starts programs. Signals do not end a shell that is process 1 of its container, so the handler forwards
// them.
func execHandler(become bool) func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			h := interp.HandlerCtx(ctx)
			path, err := interp.LookPathDir(h.Dir, h.Env, args[0])
			if err != nil {
				fmt.Fprintln(h.Stderr, "bash:", err)
				return interp.ExitStatus(exitNotFound)
			}
			env := exported(h.Env)
			if become {
				err = syscall.Exec(path, args, env)
				fmt.Fprintf(h.Stderr, "bash: starting %s: %v\n", path, err)
				return interp.ExitStatus(exitNotFound)
			}
			return child(&exec.Cmd{
				Path: path, Args: args, Env: env, Dir: h.Dir, Stdin: h.Stdin, Stdout: h.Stdout, Stderr: h.Stderr,
			})
		}
	}
}

// child runs a program until it exits, and forwards the shell's signals to it.
func child(c *exec.Cmd) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		fmt.Fprintln(c.Stderr, "bash:", err)
		return interp.ExitStatus(exitNotFound)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = c.Process.Signal(s) // the program may have exited already
		case err := <-done:
			return statusOf(err)
		}
	}
}

func statusOf(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return interp.ExitStatus(exitSignal + int(status.Signal()))
	}
	return interp.ExitStatus(exit.ExitCode())
}

// exported returns the environment of the programs that the shell starts.
func exported(vars expand.Environ) []string {
	var env []string
	for name, v := range vars.Each {
		if v.Exported && v.Kind == expand.String {
			env = append(env, name+"="+v.Str)
		}
	}
	return env
}

// Command kit builds what a default dev cluster needs, and programs of this repository, with progress. What the machine
// lacks and cannot be installed is said in one line before.
//
//	kit [-ray "VERSION ..."] [-variables] [TITLE=DIR:PACKAGE:OUTPUT]...
//
// With -variables the last it prints is, for a shell to read, where the environment of each Ray version lies:
// HELIOSTAT_RAY_VENV_2_60_0=DIRECTORY. Progress then goes to standard error.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

func main() {
	ray := flag.String("ray", kit.DefaultRay, "the versions of Ray to install, separated by spaces")
	variables := flag.Bool("variables", false, "print where the environments of Ray are, as variables of a shell")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Fields(*ray), *variables, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, ray []string, variables bool, arguments []string) error {
	needs := kit.Cluster()
	needs.Ray = ray
	for _, argument := range arguments {
		program, err := parse(argument)
		if err != nil {
			return err
		}
		needs.Programs = append(needs.Programs, program)
	}
	if err := kit.CheckRun(); err != nil {
		return err
	}
	if !variables {
		_, err := kit.Ensure(ctx, needs, os.Stdout)
		return err
	}
	built, err := kit.Ensure(ctx, needs, os.Stderr)
	if err != nil {
		return err
	}
	for _, version := range ray {
		fmt.Printf("export HELIOSTAT_RAY_VENV_%s='%s'\n", strings.ReplaceAll(version, ".", "_"), built.RayEnv(version))
	}
	return nil
}

// parse reads TITLE=DIR:PACKAGE:OUTPUT.
func parse(argument string) (kit.Program, error) {
	title, rest, found := strings.Cut(argument, "=")
	fields := strings.Split(rest, ":")
	if !found || len(fields) != 3 {
		return kit.Program{}, fmt.Errorf("argument %q: want TITLE=DIR:PACKAGE:OUTPUT", argument)
	}
	return kit.Program{Title: title, Dir: fields[0], Package: fields[1], Output: fields[2]}, nil
}

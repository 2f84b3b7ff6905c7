// Command kit builds what a default dev cluster needs, and programs of this repository, with progress. What the machine
// lacks and cannot be installed is said in one line before.
//
//	kit [-ray "VERSION ..."] [TITLE=DIR:PACKAGE:OUTPUT]...
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Fields(*ray), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, ray, arguments []string) error {
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
	_, err := kit.Ensure(ctx, needs, os.Stdout)
	return err
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

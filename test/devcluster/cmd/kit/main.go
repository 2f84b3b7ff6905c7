// Command kit builds what a default dev cluster needs, and programs of this repository, and shows progress. If a
// prerequisite is missing, it says which one before it builds anything.
//
//	kit [-parts "PART ..."] [-kubernetes RELEASE] [-ray "VERSION ..."] [-variables] [TITLE=DIR:PACKAGE:OUTPUT]...
//
// With -parts it builds those parts instead of a default dev cluster, and with -kubernetes those of another release.
// With -variables it prints at the end, for a shell to read, where the environment of each Ray version is:
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
	parts := flag.String("parts", "", "build only these parts, separated by spaces: kueue, karpenter, kwok, kubectl, …")
	kubernetes := flag.String("kubernetes", "", "the release of Kubernetes, for example 1.36.0; empty means the "+
		"default")
	ray := flag.String("ray", kit.DefaultRay, "the versions of Ray to install, separated by spaces")
	variables := flag.Bool("variables", false, "print where the environments of Ray are, as variables of a shell")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	needs := kit.Cluster()
	needs.Ray = strings.Fields(*ray)
	if *parts != "" {
		needs = kit.Needs{}
		for _, part := range strings.Fields(*parts) {
			needs.Parts = append(needs.Parts, kit.Part(part))
		}
	}
	needs.Releases = map[string]string{kit.Kubernetes: *kubernetes}
	if err := run(ctx, needs, *variables, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, needs kit.Needs, variables bool, arguments []string) error {
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
	for _, version := range needs.Ray {
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

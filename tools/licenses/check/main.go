// Command check compares the licenses of all modules that are linked into Heliostat's programs with the list of allowed
// licenses. It reads the module cache and must not use the network. With -texts it writes the texts that must be
// distributed with the programs. Run it in its own directory's module:
//
//	go run ./licenses/check -source ..
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"heliostat.dev/heliostat/tools/licenses"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "checking licenses:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	source := flags.String("source", "..", "the checkout of Heliostat; its tools module is in the folder tools of it")
	texts := flags.String("texts", "", "a file for the licenses and notices of all modules")
	if err := flags.Parse(args); err != nil {
		return err
	}
	modules, err := licenses.Linked(ctx, licenses.Carried(*source)...)
	if err != nil {
		return err
	}
	checker, err := licenses.NewChecker()
	if err != nil {
		return err
	}
	if err := checker.Check(modules); err != nil {
		return err
	}
	if *texts != "" {
		if err := os.WriteFile(*texts, checker.Texts(modules), 0o644); err != nil {
			return fmt.Errorf("writing the texts: %w", err)
		}
	}
	_, err = fmt.Fprintf(out, "licenses of %d modules are allowed\n", len(modules))
	return err
}

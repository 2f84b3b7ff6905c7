// Command image builds Heliostat's OCI image for amd64 and arm64 without a container engine. The image contains
// programs, certificates and users in three layers. The same sources produce the same bytes. Each platform has a
// software bill of materials (CycloneDX) that refers to the image. The command writes an OCI layout, pushes to a
// registry, or both. It must not change the checkout. Run it in its own directory's module:
//
//	go run ./image -source .. -out /tmp/image -push registry.example/heliostat:v1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "making the image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	source := flags.String("source", "..", "the checkout of Heliostat; its tools module is in the folder tools of it")
	layoutDir := flags.String("out", "", "a folder that becomes an OCI layout; it must not exist")
	reference := flags.String("push", "", "REPOSITORY:TAG to push to, with the credentials of ~/.docker/config.json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *layoutDir == "" && *reference == "" {
		return errors.New("give -out, -push or both")
	}
	if err := check(*layoutDir, *reference); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "heliostat-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	built, err := build(ctx, *source, work, platforms)
	if err != nil {
		return err
	}
	if *layoutDir != "" {
		if err := built.writeLayout(*layoutDir); err != nil {
			return err
		}
		at, err := filepath.Abs(*layoutDir)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s@%s\n", at, built.digest)
	}
	if *reference != "" {
		if err := built.push(ctx, *reference); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s@%s\n", *reference, built.digest)
	}
	return nil
}

// check detects errors that would otherwise appear only after the build, which takes minutes.
func check(layoutDir, reference string) error {
	if reference != "" {
		if _, err := tagOf(reference); err != nil {
			return err
		}
	}
	if layoutDir != "" {
		if _, err := os.Stat(layoutDir); err == nil {
			return fmt.Errorf("writing the layout: %s exists", layoutDir)
		}
	}
	return nil
}
